"""Labels photographs by their masks if no folder states their class."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from datasets.causes import cause_of
from datasets.sample import IGNORED, Dataset, Problem, Record
from segdec.errors import ImageError
from segdec.images import decode_mask_values, read_file


def label_by_masks(dataset: Dataset, names: Collection[str]) -> Dataset:
    """Reads the mask files of the records `names`: one without a defect pixel makes its photograph good.

    If the values of a mask are classes, the label is the one that covers most pixels. Unreadable masks become
    problems.
    """
    with ThreadPoolExecutor() as pool:
        return dataset.with_records(
            pool.map(lambda r: _labelled(r) if r.name in names and r.mask_file else r, dataset.records)
        )


def _labelled(record: Record) -> Record | Problem:
    assert record.mask_file is not None
    try:
        values = decode_mask_values(read_file(record.mask_file), str(record.mask_file))
    except ImageError as error:
        return Problem(str(record.mask_file), str(error), record.name, cause_of(error))
    counts = np.bincount(values.reshape(-1), minlength=256)
    if record.mask_values is not None:
        counts[IGNORED] = 0
    if not counts[1:].any():
        return replace(record, label=0)
    return record if record.mask_values is None else replace(record, label=int(counts[1:].argmax()) + 1)
