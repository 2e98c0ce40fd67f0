"""The contract of every layout: records that can be listed cheaply, samples that hold pixels."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segdec.images import ImageFile

Split = Literal["train", "val", "test"]

Supervision = Literal["mask", "box", "label"]
"""What an annotation tells: the defect pixels, rectangles around them, or the class alone."""


MaskValues = tuple[tuple[int, int], ...]
"""Values of a mask's pixels, each with the class that it stands for."""

VALUES_ARE_CLASSES: MaskValues = ()
"""Each value of a mask is the class itself."""


@dataclass(frozen=True)
class Record:
    """One photograph, as it is stored.

    Attributes:
        name: Path below the root without its suffix, POSIX form; unique within the data set.
        image_file: The photograph.
        mask_file: Its full-size defect mask, a file or a drawing that reads as one; None for a photograph
            known to be good, and for a defective one of which the class alone is known.
        label: Index of the class; 0 is good.
        group: Records of one group (one item, one tile) never fall into different splits.
        split: Where the record belongs, or None if it is left out.
        supervision: What the annotation tells. `mask` for a good photograph too: it has no defect pixel.
        mask_threshold: A mask pixel shows a defect where its value is above this; masks whose edges were
            smoothed need one of 127. None where nobody has said so: the mask then holds 0 and one value more.
        mask_values: Value and class of the mask's pixels, where it knows the class of each: it holds 0 and
            these values alone, `VALUES_ARE_CLASSES` where they are the classes themselves. `mask_threshold`
            then says nothing. None where all of it is of the class `label`.
        shape: Height, width (px) and channels of the photograph, where the layout knows them unread.
        digests: SHA-256, in hex, of the photograph's file and the mask's, where the layout knows them.
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

    def identity(self) -> bytes:
        """Returns name, split, label, annotation and digests of the record, as what it is known by."""
        contents = b"".join(map(bytes.fromhex, self.digests or ()))
        if self.mask_values is not None:
            contents += repr(self.mask_values).encode()
        return identity(self.name, self.split, self.label, self.supervision, self.mask_threshold, contents)

    def with_split(self, split: Split | None) -> "Record":
        """Returns the same record in `split`."""
        return replace(self, split=split)


def identity(
    name: str,
    split: Split | None,
    label: int,
    supervision: Supervision,
    mask_threshold: int | None,
    contents: bytes,
) -> bytes:
    """Returns `Record.identity` of a record with these attributes; `contents` are the digests, joined."""
    text = f"{name}\0{split}\0{label}\0"
    if (supervision, mask_threshold) != ("mask", None):
        text += f"{supervision}\0{mask_threshold}\0"
    return text.encode() + contents


class LazyRecords(Sequence[Record], ABC):
    """Records in the order of their names, each made when it is asked for; all of them have a split.

    A million of them take a small part of the memory, and of the time, that as many objects take: what is
    asked about all of them is answered without making any.
    """

    @abstractmethod
    def of_split(self, split: Split) -> "LazyRecords":
        """Returns those of `split`."""

    @abstractmethod
    def labels(self) -> NDArray[np.int64]:
        """Returns the class of each, [N]."""

    @abstractmethod
    def unlocalized(self) -> NDArray[np.bool_]:
        """Returns of which it is not known where their defect is, [N]."""

    @abstractmethod
    def shapes(self) -> dict[tuple[int, int, int], int]:
        """Returns the shapes that occur, each with the place of its first photograph."""

    @abstractmethod
    def identities(self) -> Iterator[bytes]:
        """Yields `Record.identity` of each."""

    @abstractmethod
    def equal_files(self) -> list[tuple[int, ...]]:
        """Returns the places of each photograph whose file is there more than once."""


def labels_of(records: Sequence[Record]) -> NDArray[np.int64]:
    """Returns the class of each record, [N]."""
    if isinstance(records, LazyRecords):
        return records.labels()
    return np.array([record.label for record in records], np.int64)


def unlocalized(records: Sequence[Record]) -> NDArray[np.bool_]:
    """Returns which photographs show a defect of which nobody knows where it is, [N]."""
    if isinstance(records, LazyRecords):
        return records.unlocalized()
    return np.array([is_unlocalized(record) for record in records], np.bool_)


def is_unlocalized(record: Record) -> bool:
    """Returns whether a photograph shows a defect of which nobody knows where it is."""
    return record.label != 0 and (record.mask_file is None or record.supervision == "label")


@dataclass(frozen=True)
class Sample:
    """One photograph in memory.

    Attributes:
        name: The record's name.
        image: uint8 [H, W, C], C is 1 (grey) or 3 (RGB).
        mask: uint8 [H, W], 255 where there is a defect, 0 elsewhere; None without a mask file.
        label: Index of the class; 0 is good.
        supervision: What the annotation tells; a mask of `box` holds filled rectangles.
        classes: uint8 [H, W], class of the nearest defect pixel, its own for a defect pixel; None where all
            of them are of the class `label`.
    """

    name: str
    image: NDArray[np.uint8]
    mask: NDArray[np.uint8] | None
    label: int
    supervision: Supervision = "mask"
    classes: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class Problem:
    """Something in a data set that cannot be used as it is.

    Attributes:
        place: The file, with the line or entry where there is one.
        text: What arrived, what was expected, what to do.
        name: The record that it would have been, as split files name it; empty where that is not known.
    """

    place: str
    text: str
    name: str = ""


@dataclass(frozen=True)
class Dataset:
    """The records of one layout under one root.

    Attributes:
        classes: Names of the classes, `good` first.
        records: What can be used, in the order of their names.
        problems: What cannot, all of it: a photograph with a problem is no record.
    """

    classes: tuple[str, ...]
    records: Sequence[Record]
    problems: tuple[Problem, ...] = ()

    def of_split(self, split: Split) -> Sequence[Record]:
        """Returns the records of `split`, in the order of their names."""
        if isinstance(self.records, LazyRecords):
            return self.records.of_split(split)
        return tuple(record for record in self.records if record.split == split)

    def assigned(self) -> "Dataset":
        """Returns the same data set without the records that have no split."""
        if isinstance(self.records, LazyRecords):
            return self
        return replace(self, records=tuple(record for record in self.records if record.split is not None))


Layout = Callable[[Path], Dataset]
"""Lists what lies under a root folder. Each layout module has one, named `index`."""
