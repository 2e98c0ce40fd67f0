"""A mask file that holds class indices without names."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.class_values import distinct_values, list_values
from datasets.annotations.computed_mask import DerivedMask
from datasets.causes import Cause, CodedDatasetError
from datasets.sample import IGNORED
from segdec.images import DEFAULT_MAX_PIXELS, ImageFile, decode_mask_values, read_file

MAX_INDEX = 20
"""Highest value that counts as a class index without a name: Pascal VOC has 20 classes."""


@dataclass(frozen=True)
class IndexedMask(DerivedMask):
    """A mask file whose class indices all become `label`, the class of its photograph; 255 is ignored."""

    label: int

    def draw(self) -> NDArray[np.uint8]:
        """Returns the mask [H, W] of classes; DatasetError if a value is neither an index nor 255."""
        numbers = read_numbers(self.mask, max_pixels=self.max_pixels)
        if others := [value for value in distinct_values(numbers) if MAX_INDEX < value < IGNORED]:
            raise CodedDatasetError(
                f"The mask {self.mask} has the values {list_values(others)}, but other masks of its folder "
                f"hold class indices. Expected values up to {MAX_INDEX}, and {IGNORED} for ignored pixels: "
                "correct the mask, or name the classes in data.mask_values.",
                Cause("mask_unclear", {"mask": str(self.mask)}),
            )
        ignored = numbers == IGNORED
        numbers[numbers > 0] = self.label
        numbers[ignored] = IGNORED
        return numbers


def read_numbers(file: ImageFile, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> NDArray[np.uint8]:
    """Reads the palette indices or grey values of a mask file, uint8 [H, W].

    The values of a grey palette count, not its indices: they may be smooth edges. Raises ImageError.
    """
    return decode_mask_values(read_file(file), str(file), max_pixels=max_pixels, classes=range(256)).copy()
