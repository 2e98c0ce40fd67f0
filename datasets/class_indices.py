"""Recognises mask files that hold class indices without names, as labelling tools export them.

The values of all masks are compared, because a single file rarely holds every class.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.class_values import list_values
from datasets.annotations.combined_mask import CombinedMask
from datasets.annotations.indexed_mask import MAX_INDEX, IndexedMask, read_numbers
from datasets.annotations.rotated_mask import RotatedMask
from datasets.sample import IGNORED, VALUES_ARE_CLASSES, Dataset, DataSetItem, LazyItems
from segdec.errors import ImageError
from segdec.images import decode_mask_values, read_file

MAX_COMPARED = 1000
"""Mask files whose values are compared; of more, an even sample."""
MIN_INDEX_SHARE = 0.05
"""Of the marked pixels: fewer small values beside 255 are errors in masks of two values, not indices."""


def read_class_indices(dataset: Dataset, max_pixels: int) -> Dataset:
    """Returns the data set with mask files of class indices: values above 0 are defects, 255 is ignored.

    Nothing changes if each mask has at most one value besides 0, or if the values are not indices. Masks in
    folders without indices stay as they are, and so do those with a threshold, with named values, inverted
    ones, and those of more than `max_pixels`.
    """
    if isinstance(dataset.items, LazyItems):
        return dataset
    files = [file for item in dataset.items for file in _undecided_files(item)]
    compared = files[:: len(files) // MAX_COMPARED + 1]
    with ThreadPoolExecutor() as pool:
        counts = dict(zip(compared, pool.map(partial(_count_values, max_pixels), compared), strict=True))
    values = {file: set(map(int, np.flatnonzero(each))) for file, each in counts.items()}
    folders: dict[Path, set[int]] = {file.parent: set() for file in compared}
    for file, found in values.items():
        folders[file.parent] |= found
    unclear = {file.parent for file, found in values.items() if len(found) > 1 and 0 not in found}
    indexed = {folder for folder, found in folders.items() if _are_indices(found)} - unclear
    several = [file for file in compared if file.parent in indexed and len(values[file]) > 2]
    used = set().union(*(folders[folder] for folder in indexed))
    if not several or not _are_numbered(used, several[0], np.sum([counts[file] for file in several], axis=0)):
        return dataset
    items = tuple(_indexed(item, indexed) for item in dataset.items)
    return replace(dataset, items=items, notes=(*dataset.notes, _describe(dataset.classes, sorted(used))))


def _undecided_files(item: DataSetItem) -> list[Path]:
    """The files of a mask whose values may be indices."""
    mask = item.mask_file
    if isinstance(mask, RotatedMask) or (isinstance(mask, BoxedMask) and mask.threshold == 0):
        return _undecided_files(replace(item, mask_file=mask.mask))
    if isinstance(mask, CombinedMask) and item.mask_threshold is None:
        return [part for part in mask.parts if isinstance(part, Path)]
    decided = item.mask_threshold is not None or item.mask_values is not None
    return [mask] if isinstance(mask, Path) and not decided else []


def _count_values(max_pixels: int, file: Path) -> NDArray[np.int64]:
    """The number of pixels of each value of a mask file, [256]; 0 if it is unreadable: the check says so."""
    try:
        return np.bincount(read_numbers(file, max_pixels=max_pixels).reshape(-1), minlength=256)
    except ImageError:
        return np.zeros(256, np.int64)


def _are_indices(values: set[int]) -> bool:
    highest = max(values - {IGNORED}, default=0)
    return 0 < highest <= MAX_INDEX


def _are_numbered(values: set[int], file: Path, counts: NDArray[np.int64]) -> bool:
    """Whether small values are indices: beside 255 they may be edges or errors, except in a palette."""
    indices = values - {0, IGNORED}
    is_rare = counts[1:IGNORED].sum() < MIN_INDEX_SHARE * counts[1:].sum()
    if IGNORED not in values or (indices == set(range(1, len(indices) + 1)) and not is_rare):
        return True
    return not np.array_equal(decode_mask_values(read_file(file), str(file)), read_numbers(file))


def _indexed(item: DataSetItem, folders: set[Path]) -> DataSetItem:
    mask, label = item.mask_file, max(item.label, 1)
    if not any(file.parent in folders for file in _undecided_files(item)):
        return item
    if isinstance(mask, BoxedMask | RotatedMask):
        inner = _indexed(replace(item, mask_file=mask.mask), folders)
        assert inner.mask_file is not None
        mask = replace(mask, mask=inner.mask_file)
        return replace(
            inner, mask_file=replace(mask, threshold=None) if isinstance(mask, BoxedMask) else mask
        )
    if isinstance(mask, CombinedMask):
        labels = mask.values or (label,) * len(mask.parts)
        parts = tuple(
            IndexedMask(part, number) if isinstance(part, Path) and part.parent in folders else part
            for part, number in zip(mask.parts, labels, strict=True)
        )
        mask = replace(mask, parts=parts, values=labels)
    elif mask is not None:
        mask = IndexedMask(mask, label)
    return replace(item, mask_file=mask, mask_values=VALUES_ARE_CLASSES, digests=None)


def _describe(classes: Sequence[str], values: Sequence[int]) -> str:
    defects = [value for value in values if 0 < value < IGNORED]
    ignored = f"; {IGNORED} is ignored, as pixels of unknown class" if IGNORED in values else ""
    names = "name the values in an experiment (data.mask_values)"
    if len(classes) == 2:
        names = (
            "move the masks, named as their photographs, to one folder SegmentationClass, beside a file "
            "class_names.txt with a name in each line, the background first (in a manifest: to the column "
            "class_mask, with names in classes.txt)"
        )
    return (
        f"Masks hold class indices ({list_values(defects)}): every value above 0 is a defect of the class of "
        f"its photograph{ignored}. If each value is a class of its own, {names}."
    )
