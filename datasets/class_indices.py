"""Recognises mask files that hold class indices without names, as labelling tools export them.

The values of all masks are compared, because a single file rarely holds every class.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.class_values import distinct_values, list_values
from datasets.annotations.combined_mask import CombinedMask
from datasets.annotations.indexed_mask import MAX_INDEX, IndexedMask, read_numbers
from datasets.sample import IGNORED, VALUES_ARE_CLASSES, Dataset, DataSetItem, LazyItems
from segdec.errors import ImageError
from segdec.images import ImageFile, decode_mask_values, read_file

MAX_COMPARED = 500
"""Mask files whose values are compared; of more, an even sample."""

Values = frozenset[int]


def read_class_indices(dataset: Dataset) -> Dataset:
    """Returns the data set with mask files of class indices: values above 0 are defects, 255 is ignored.

    Nothing changes if each mask has at most one value besides 0, or if any values are not indices. Masks in
    folders without indices stay as they are, and so do masks with a threshold or named values.
    """
    if isinstance(dataset.items, LazyItems):
        return dataset
    files = [file for item in dataset.items for file in _files(item.mask_file) if _is_undecided(item)]
    compared = files[:: len(files) // MAX_COMPARED + 1]
    with ThreadPoolExecutor() as pool:
        values = dict(zip(compared, pool.map(_values, compared), strict=True))
    folders: dict[Path, set[int]] = {file.parent: set() for file in compared}
    for file, found in values.items():
        folders[file.parent] |= found
    unclear = {file.parent for file, found in values.items() if len(found) > 1 and 0 not in found}
    indexed = {folder for folder, found in folders.items() if _are_indices(found)} - unclear
    several = [file for file in compared if file.parent in indexed and len(values[file]) > 2]
    found = set().union(*(folders[folder] for folder in indexed))
    if not several or not _are_numbered(found, several[0]):
        return dataset
    items = tuple(_indexed(item, indexed) if _is_undecided(item) else item for item in dataset.items)
    return replace(dataset, items=items, notes=(*dataset.notes, _describe(dataset.classes, sorted(found))))


def _is_undecided(item: DataSetItem) -> bool:
    mask = item.mask_file.mask if isinstance(item.mask_file, BoxedMask) else item.mask_file
    return item.mask_threshold is None and (item.mask_values is None or isinstance(mask, CombinedMask))


def _files(mask: ImageFile | None) -> list[Path]:
    """The files of a mask whose values may be indices."""
    if isinstance(mask, BoxedMask):
        return _files(mask.mask)
    parts = mask.parts if isinstance(mask, CombinedMask) else (mask,)
    return [part for part in parts if isinstance(part, Path)]


def _values(file: Path) -> Values:
    """The values of a mask file; empty if it cannot be read, which the check reports."""
    try:
        return frozenset(distinct_values(read_numbers(file)))
    except ImageError:
        return frozenset()


def _are_indices(values: set[int]) -> bool:
    highest = max(values - {IGNORED}, default=0)
    return 0 < highest <= MAX_INDEX


def _are_numbered(values: set[int], file: Path) -> bool:
    """Whether small values are indices: beside 255 one of them may be an edge, except in a palette."""
    indices = values - {0, IGNORED}
    if IGNORED not in values or indices == set(range(1, len(indices) + 1)):
        return True
    return not np.array_equal(decode_mask_values(read_file(file), str(file)), read_numbers(file))


def _indexed(item: DataSetItem, folders: set[Path]) -> DataSetItem:
    mask, label = item.mask_file, max(item.label, 1)
    inner = mask.mask if isinstance(mask, BoxedMask) else mask
    drawn: ImageFile
    if isinstance(inner, CombinedMask):
        labels = inner.values or (label,) * len(inner.parts)
        parts = tuple(_part(part, number, folders) for part, number in zip(inner.parts, labels, strict=True))
        drawn = replace(inner, parts=parts, values=labels)
    elif inner is not None:
        parts = (drawn := _part(inner, label, folders),)
    if inner is None or not any(isinstance(part, IndexedMask) for part in parts):
        return item
    if isinstance(mask, BoxedMask):
        drawn = replace(mask, mask=drawn, threshold=None)
    return replace(item, mask_file=drawn, mask_values=VALUES_ARE_CLASSES, digests=None)


def _part(file: ImageFile, label: int, folders: set[Path]) -> ImageFile:
    return IndexedMask(file, label) if isinstance(file, Path) and file.parent in folders else file


def _describe(classes: Sequence[str], values: Sequence[int]) -> str:
    defects = [value for value in values if 0 < value < IGNORED]
    ignored = f"; {IGNORED} is ignored, as pixels of unknown class" if IGNORED in values else ""
    names = "name the values in an experiment (data.mask_values)"
    if len(classes) == 2:
        names = (
            "move the masks to a folder SegmentationClass, beside a file class_names.txt with a name in each "
            "line, the background first (in a manifest: to the column class_mask, with names in classes.txt)"
        )
    return (
        f"Masks hold class indices ({list_values(defects)}): every value above 0 is a defect of the class of "
        f"its photograph{ignored}. If each value is a class of its own, {names}."
    )
