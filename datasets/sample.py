"""The contract of every layout: records that can be listed cheaply, samples that hold pixels."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segdec.images import ImageFile

Split = Literal["train", "val", "test"]

Supervision = Literal["mask", "box", "label"]
"""What an annotation tells: the defect pixels, rectangles around them, or the class alone."""


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
    shape: tuple[int, int, int] | None = None
    digests: tuple[str, ...] | None = None

    def assigned(self, split: Split | None) -> "Record":
        """Returns the same record in `split`."""
        return replace(self, split=split)


@dataclass(frozen=True)
class Sample:
    """One photograph in memory.

    Attributes:
        name: The record's name.
        image: uint8 [H, W, C], C is 1 (grey) or 3 (RGB).
        mask: uint8 [H, W], 255 where there is a defect, 0 elsewhere; None without a mask file.
        label: Index of the class; 0 is good.
        supervision: What the annotation tells; a mask of `box` holds filled rectangles.
    """

    name: str
    image: NDArray[np.uint8]
    mask: NDArray[np.uint8] | None
    label: int
    supervision: Supervision = "mask"


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
    records: tuple[Record, ...]
    problems: tuple[Problem, ...] = ()

    def of_split(self, split: Split) -> tuple[Record, ...]:
        """Returns the records of `split`, in the order of their names."""
        return tuple(record for record in self.records if record.split == split)


Layout = Callable[[Path], Dataset]
"""Lists what lies under a root folder. Each layout module has one, named `index`."""
