"""Masks and labels for a partly inspected photograph: a defect outside the inspected area does not count."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from datasets.sample import Record, Sample, is_unlocalized
from segdec.config import InputConfig
from segdec.runtime.cli import progress_bar


def clip_mask(sample: Sample, config: InputConfig) -> Sample:
    """Returns the sample with its mask set to 0 outside the inspected area."""
    if sample.mask is None or not config.is_partial:
        return sample
    area = config.inspected_area(*sample.mask.shape)
    return replace(sample, mask=None if area is None else np.minimum(sample.mask, area))


def relabel_uninspected(
    records: Sequence[Record], read: Callable[[Record], Sample], config: InputConfig
) -> Sequence[Record]:
    """Returns the records, each with the label of its inspected part.

    A photograph is good if its mask or box is entirely outside the inspected area, to which `read` clips it.
    If only the defects of its own class are outside, it gets the class with the largest area inside.
    Label-only photographs stay unchanged.

    Raises:
        SegdecError: If a defective photograph cannot be read.
    """
    if not config.is_partial:
        return records
    progress = progress_bar(records, desc="locating defects", unit="image", leave=False)
    relabelled = tuple(_relabel(record, read) for record in progress)
    if unknown := sum(is_unlocalized(record) for record in relabelled):
        print(
            f"warning: {unknown} defective photographs have a label only. They count as defective, although "
            "their defects may be outside the inspected area. Add masks or boxes, or remove them.",
            file=sys.stderr,
        )
    return relabelled


def _relabel(record: Record, read: Callable[[Record], Sample]) -> Record:
    if record.label == 0 or is_unlocalized(record):
        return record
    sample = read(record)
    if sample.mask is None:
        return record
    if not sample.mask.any():
        good = replace(record, label=0, supervision="mask")
        return good if sample.ignored is not None else replace(good, mask_file=None, mask_values=None)
    if sample.classes is None:
        return record
    areas_px = np.bincount(sample.classes[sample.mask > 0], minlength=record.label + 1)
    return record if areas_px[record.label] else replace(record, label=int(areas_px.argmax()))
