"""A mask file whose values stand for classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.class_values import read_classes
from datasets.annotations.computed_mask import DerivedMask
from datasets.sample import IGNORED, MaskValues
from segdec.images import decode_mask_values, read_file


@dataclass(frozen=True)
class NumberedMask(DerivedMask):
    """A mask with the index of its class instead of each value; `IGNORED` where the class is unknown."""

    values: MaskValues

    def draw(self) -> NDArray[np.uint8]:
        """Returns the mask [H, W] of classes; DatasetError if a value is not a class."""
        known = [value for value, _ in self.values]
        values = decode_mask_values(
            read_file(self.mask), str(self.mask), max_pixels=self.max_pixels, classes=known
        )
        mask, classes, ignored = read_classes(values, self.values, str(self.mask))
        numbers = np.zeros_like(values) if classes is None else np.where(mask > 0, classes, np.uint8(0))
        if ignored is not None:
            numbers[ignored > 0] = IGNORED
        return numbers
