"""A mask file that is white where the photograph is good."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.computed_mask import DerivedMask
from segdec.images import decode_mask_values


@dataclass(frozen=True)
class InvertedMask(DerivedMask):
    """A mask with the values of another one inverted: its highest value becomes 0."""

    def __str__(self) -> str:
        return f"{self.mask} (inverted)"

    def draw(self) -> NDArray[np.uint8]:
        values = decode_mask_values(self.mask.read_bytes(), str(self.mask), max_pixels=self.max_pixels)
        white = values.max() or np.uint8(255)  # an empty mask means that all of the photograph is defective
        return np.asarray(white - values, np.uint8)
