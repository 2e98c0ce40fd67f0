"""Masks and labels for a partly inspected photograph: a defect outside the inspected area does not count."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from datasets.sample import DataSetItem, Sample, is_unlocalized
from segdec.config import InputConfig
from segdec.runtime.cli import progress_bar
from segdec.runtime.counts import count_of


def clip_mask(sample: Sample, config: InputConfig) -> Sample:
    """Returns the sample with its mask set to 0 outside the inspected area."""
    if sample.mask is None or not config.is_partial:
        return sample
    area = config.inspected_area(*sample.mask.shape)
    return replace(sample, mask=None if area is None else np.minimum(sample.mask, area))


def relabel_uninspected(
    items: Sequence[DataSetItem], read: Callable[[DataSetItem], Sample], config: InputConfig
) -> Sequence[DataSetItem]:
    """Returns the items, each with the label of its inspected part.

    A photograph is good if its mask or box is entirely outside the inspected area, to which `read` clips it.
    If only the defects of its own class are outside, it gets the class with the largest area inside.
    Label-only photographs stay unchanged. Raises a `SegdecError` if a defective photograph cannot be read.
    """
    if not config.is_partial:
        return items
    progress = progress_bar(items, desc="locating defects", unit="image", leave=False)
    relabelled = tuple(_relabel(item, read) for item in progress)
    if unknown := sum(is_unlocalized(item) for item in relabelled):
        print(
            f"warning: {count_of(unknown, 'defective photograph')} with a label only. They count as "
            "defective, although their defects may be outside the inspected area. Add masks or boxes, "
            "or remove them.",
            file=sys.stderr,
        )
    return relabelled


def _relabel(item: DataSetItem, read: Callable[[DataSetItem], Sample]) -> DataSetItem:
    if item.label == 0 or is_unlocalized(item):
        return item
    sample = read(item)
    if sample.mask is None:
        return item
    if not sample.mask.any():
        good = replace(item, label=0, supervision="mask")
        return good if sample.ignored is not None else replace(good, mask_file=None, mask_values=None)
    if sample.classes is None:
        return item
    areas_px = np.bincount(sample.classes[sample.mask > 0], minlength=item.label + 1)
    return item if areas_px[item.label] else replace(item, label=int(areas_px.argmax()))
