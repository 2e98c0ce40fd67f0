"""Records and samples of which a part alone is inspected: what lies elsewhere is no defect."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from datasets.sample import Record, Sample, is_unlocalized
from segdec.config import InputConfig
from segdec.runtime.cli import progress_bar


def clip_mask(sample: Sample, config: InputConfig) -> Sample:
    """Returns the sample without what its mask marks outside of the inspected area."""
    if sample.mask is None or not config.is_partial:
        return sample
    area = config.inspected_area(*sample.mask.shape)
    return replace(sample, mask=None if area is None else np.minimum(sample.mask, area))


def relabel_uninspected(
    records: Sequence[Record], read: Callable[[Record], Sample], config: InputConfig
) -> Sequence[Record]:
    """Returns the records, of which those are good whose defect lies wholly outside of the inspected area.

    Where a defect is, a mask or a box tells; a photograph whose class alone is known keeps it. One that shows
    a part of its defect inside keeps its class, too; where that lies wholly outside, and others do not, it
    gets that of the largest area inside.

    Args:
        records: They are made one by one, also those of shards.
        read: Reads a record, its mask cut to the area.
        config: What is inspected.

    Raises:
        SegdecError: If a photograph with a defect cannot be read.
    """
    if not config.is_partial:
        return records
    shown = progress_bar(records, desc="looking where defects are", unit="image", leave=False)
    found = tuple(_relabelled(record, read) for record in shown)
    if unknown := sum(is_unlocalized(record) for record in found):
        print(
            f"warning: Of {unknown} defective photographs the class alone is known, so that they count as "
            "defective although their defects may lie where nothing is inspected. Draw masks or boxes, or "
            "leave out those whose defects lie there.",
            file=sys.stderr,
        )
    return found


def _relabelled(record: Record, read: Callable[[Record], Sample]) -> Record:
    if record.label == 0 or is_unlocalized(record):
        return record
    sample = read(record)
    if sample.mask is None:
        return record
    if not sample.mask.any():
        return replace(record, label=0, mask_file=None, mask_values=None, supervision="mask")
    if sample.classes is None:
        return record
    areas_px = np.bincount(sample.classes[sample.mask > 0], minlength=record.label + 1)
    return record if areas_px[record.label] else replace(record, label=int(areas_px.argmax()))
