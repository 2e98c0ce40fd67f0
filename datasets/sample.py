"""Common types of all layouts: items, which hold no pixels, and samples, which do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from datasets.causes import Cause
from segdec.images import ImageFile

Split = Literal["train", "val", "test"]

Supervision = Literal["mask", "box", "label"]
"""Kind of annotation: defect pixels, rectangles around defects, or the class alone."""

DrawnOn = Literal["size", "fractions", "pixels", "upright"]
"""What shows whether an annotation was drawn before or after the EXIF rotation of its photograph.

The `size` in the annotation does, if the rotation changes it. `fractions`, and `pixels` without a size, do
not. `upright`: it is known to be drawn after it.
"""

MaskValues = tuple[tuple[int, int], ...]
"""Pairs of mask value and class index."""

VALUES_ARE_CLASSES: MaskValues = ()
"""Each mask value is the class index."""

IGNORED = 255
"""Class index of pixels whose class is unknown: they have no weight in training and in pixel metrics."""

MAX_CLASSES = IGNORED - 1
"""Classes of defects that a mask can number."""


def renumber(values: MaskValues, numbers: Mapping[int, int]) -> MaskValues:
    """Returns the values of classes that have other indices now; `numbers` has the new index of each.

    Values of other classes are left out: a mask that holds one of them is then invalid.
    """
    known = {**numbers, 0: 0, IGNORED: IGNORED}
    pairs = values or [(number, number) for number in known]
    found = tuple((value, known[number]) for value, number in pairs if number and number in known)
    return found or ((IGNORED, IGNORED),)  # an empty tuple is `VALUES_ARE_CLASSES`


@dataclass(frozen=True)
class DataSetItem:
    """One photograph and its annotation, not decoded.

    Attributes:
        name: Path below the root without its suffix, POSIX form; unique within the data set.
        image_file: The photograph.
        mask_file: Its full-size defect mask, a file or a `DrawnMask`, which is read like a file; None for a
            good photograph, and for a defective one with only a class.
        label: Index of the class; 0 is good.
        group: Items of one group (one part, one tile) are always in one split.
        split: The split, or None if the item is ignored.
        fold: The fold of a training item, from 1; None without folds.
        supervision: Kind of annotation; `mask` for a good photograph, which has no defect pixel.
        mask_threshold: A mask pixel is defective if its value is above this; masks with smooth edges need
            127. None if unknown: the mask may then hold 0 and one other value.
        mask_values: Classes of the mask values, or `VALUES_ARE_CLASSES`; `mask_threshold` then has no effect.
            Only such a mask can have `IGNORED` pixels. None if all defect pixels have the class `label`.
        shape: Height, width (px) and channels of the photograph, if the layout knows them without reading.
        digests: SHA-256, in hex, of the photograph's file and the mask's, if the layout knows them.
        drawn_on: What shows whether the mask was drawn before the EXIF rotation of the photograph.
    """

    name: str
    image_file: ImageFile
    mask_file: ImageFile | None
    label: int
    group: str
    split: Split | None = None
    supervision: Supervision = "mask"
    mask_threshold: int | None = None
    mask_values: MaskValues | None = None
    shape: tuple[int, int, int] | None = None
    digests: tuple[str, ...] | None = None
    fold: int | None = None
    drawn_on: DrawnOn = "size"

    @property
    def split_word(self) -> str | None:
        """The split, or the fold of a training item, as in split files."""
        return self.split if self.fold is None else f"fold_{self.fold}"

    def identity(self) -> bytes:
        """Returns name, split, label, annotation and digests as bytes, to hash or compare."""
        contents = b"".join(map(bytes.fromhex, self.digests or ()))
        if self.mask_values is not None:
            contents += repr(self.mask_values).encode()
        return identity(
            self.name, self.split_word, self.label, self.supervision, self.mask_threshold, contents
        )

    def with_split(self, split: Split | None, fold: int | None = None) -> "DataSetItem":
        """Returns a copy in `split`, and in this fold of train."""
        return replace(self, split=split, fold=fold)


def identity(
    name: str,
    split: str | None,
    label: int,
    supervision: Supervision,
    mask_threshold: int | None,
    contents: bytes,
) -> bytes:
    """Returns `DataSetItem.identity` for these attributes; `contents` are the joined digests."""
    text = f"{name}\0{split}\0{label}\0"
    if (supervision, mask_threshold) != ("mask", None):
        text += f"{supervision}\0{mask_threshold}\0"
    return text.encode() + contents


class LazyItems(Sequence[DataSetItem], ABC):
    """Items sorted by name and created on access; all of them have a split.

    Properties of all items are computed from columns, so that a million items need no million objects.
    """

    @abstractmethod
    def of_split(self, split: Split) -> "LazyItems":
        """Returns the items of `split`."""

    @abstractmethod
    def labels(self) -> NDArray[np.int64]:
        """Returns the class of each, [N]."""

    @abstractmethod
    def unlocalized(self) -> NDArray[np.bool_]:
        """Returns `is_unlocalized` of each item, [N]."""

    @abstractmethod
    def shapes(self) -> dict[tuple[int, int, int], int]:
        """Returns all shapes, each with the index of its first photograph."""

    @abstractmethod
    def identities(self) -> Iterator[bytes]:
        """Yields `DataSetItem.identity` of each."""

    @abstractmethod
    def equal_files(self) -> list[tuple[int, ...]]:
        """Returns the indices of equal photograph files, one tuple for each set of equal files."""


def labels_of(items: Sequence[DataSetItem]) -> NDArray[np.int64]:
    """Returns the class of each item, [N]."""
    if isinstance(items, LazyItems):
        return items.labels()
    return np.array([item.label for item in items], np.int64)


def unlocalized(items: Sequence[DataSetItem]) -> NDArray[np.bool_]:
    """Returns `is_unlocalized` of each item, [N]."""
    if isinstance(items, LazyItems):
        return items.unlocalized()
    return np.array([is_unlocalized(item) for item in items], np.bool_)


def is_unlocalized(item: DataSetItem) -> bool:
    """Returns whether the item is defective without a mask or box that shows where."""
    return item.label != 0 and (item.mask_file is None or item.supervision == "label")


@dataclass(frozen=True)
class Sample:
    """One photograph in memory.

    Attributes:
        name: The item's name.
        image: uint8 [H, W, C], C is 1 (grey) or 3 (RGB).
        mask: uint8 [H, W], 255 for defect pixels, else 0; None without a mask file.
        label: Index of the class; 0 is good.
        supervision: Kind of annotation; with `box` the mask holds filled rectangles.
        classes: uint8 [H, W], class of the nearest defect pixel (a defect pixel has its own class); None if
            all defect pixels have the class `label`.
        ignored: uint8 [H, W], 255 where the class is unknown, else 0; None if it is known everywhere.
        bit_depth: Bits per channel of the photograph's file.
        warnings: Those of its decoder.
        orientation: The EXIF orientation of the photograph's file, 1 to 8, which was applied.
    """

    name: str
    image: NDArray[np.uint8]
    mask: NDArray[np.uint8] | None
    label: int
    supervision: Supervision = "mask"
    classes: NDArray[np.uint8] | None = None
    ignored: NDArray[np.uint8] | None = None
    bit_depth: int = 8
    warnings: tuple[str, ...] = ()
    orientation: int = 1


@dataclass(frozen=True)
class DataSetIssue:
    """A part of a data set that cannot be used."""

    place: str
    """The file, with line or entry if there is one."""
    text: str
    """What arrived, what was expected, what to do."""
    name: str = ""
    """Name of the affected item; empty if unknown."""
    cause: Cause | None = None
    """What the text is about, for other languages; None: the text is shown as it is."""


@dataclass(frozen=True)
class Dataset:
    """The items of one layout under one root.

    Attributes:
        classes: Names of the classes, `good` first.
        items: All usable photographs, sorted by name.
        problems: All problems; a photograph with a problem is not among the items.
        dropped: Problems of single shapes, which are ignored or cut off while their photograph is used.
        notes: Sentences for the user about how the folder was read.
        labels: The labels as folders and annotation files spell them; empty if the layout has its own.
    """

    classes: tuple[str, ...]
    items: Sequence[DataSetItem]
    problems: tuple[DataSetIssue, ...] = ()
    dropped: tuple[DataSetIssue, ...] = ()
    notes: tuple[str, ...] = ()
    labels: frozenset[str] = field(default=frozenset(), compare=False)

    def of_split(self, split: Split) -> Sequence[DataSetItem]:
        """Returns the items of `split`, sorted by name."""
        if isinstance(self.items, LazyItems):
            return self.items.of_split(split)
        return tuple(item for item in self.items if item.split == split)

    def with_items(self, items: Iterable["DataSetItem | DataSetIssue"]) -> "Dataset":
        """Returns the data set with these items; the problems among them are added to its problems."""
        given = tuple(items)
        return replace(
            self,
            items=tuple(each for each in given if isinstance(each, DataSetItem)),
            problems=(*self.problems, *(each for each in given if isinstance(each, DataSetIssue))),
        )

    def assigned(self) -> "Dataset":
        """Returns the data set without the items that have no split."""
        if isinstance(self.items, LazyItems):
            return self
        return replace(self, items=tuple(item for item in self.items if item.split is not None))


Layout = Callable[[Path], Dataset]
"""Lists the data set below a root folder; the function `index` of each layout module."""
