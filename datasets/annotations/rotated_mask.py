"""A mask that was drawn on its photograph before the EXIF rotation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.computed_mask import DerivedMask
from segdec.images import ImageHeader, decode_mask_values, read_file
from segdec.imaging.decoders import upright


@dataclass(frozen=True)
class RotatedMask(DerivedMask):
    """A mask with the pixels of another one, rotated as its photograph.

    A mask of another size than the stored photograph is not rotated: its size shows that it was not drawn
    on that. `classes` are the values of the mask if they are classes, empty if unknown.
    """

    photograph: ImageHeader
    classes: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.mask} (rotated)"

    def draw(self) -> NDArray[np.uint8]:
        values = decode_mask_values(
            read_file(self.mask), str(self.mask), max_pixels=self.max_pixels, classes=self.classes
        )
        if values.shape != (self.photograph.height, self.photograph.width):
            return values
        return upright(values, self.photograph.orientation)
