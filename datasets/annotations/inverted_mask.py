"""A mask file that is white where the photograph is good."""

from dataclasses import dataclass, replace

import numpy as np

from segdec.images import DEFAULT_MAX_PIXELS, ImageFile, decode_mask_values, encode_png


@dataclass(frozen=True)
class InvertedMask:
    """A mask file with the values of another one inverted: its highest value becomes 0."""

    mask: ImageFile
    max_pixels: int = DEFAULT_MAX_PIXELS

    def __str__(self) -> str:
        return f"{self.mask} (inverted)"

    def within(self, max_pixels: int) -> "InvertedMask":
        """Returns a copy with another limit."""
        return replace(self, max_pixels=max_pixels)

    def read_bytes(self) -> bytes:
        """Returns the inverted mask as a PNG file; OSError or ImageError if the mask cannot be read."""
        values = decode_mask_values(self.mask.read_bytes(), str(self.mask), max_pixels=self.max_pixels)
        white = values.max() or np.uint8(255)  # an empty mask means that all of the photograph is defective
        return encode_png(white - values)
