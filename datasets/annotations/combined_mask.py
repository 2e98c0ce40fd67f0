"""One mask made of several mask files."""

from dataclasses import dataclass, replace

import numpy as np

from datasets.annotations.class_values import distinct_values
from segdec.errors import ImageError
from segdec.images import DEFAULT_MAX_PIXELS, ImageFile, decode_mask_values, encode_png, read_file


@dataclass(frozen=True)
class CombinedMask:
    """The masks of one photograph, one file for each defect, as one file.

    Attributes:
        parts: Mask files of the same size.
        values: Value of the pixels above 0 of each part, later ones over earlier ones; if empty, each pixel
            has its highest value.
        max_pixels: Limit on height × width.
    """

    parts: tuple[ImageFile, ...]
    values: tuple[int, ...] = ()
    max_pixels: int = DEFAULT_MAX_PIXELS

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts))

    def within(self, max_pixels: int) -> "CombinedMask":
        """Returns a copy with another limit."""
        return replace(self, max_pixels=max_pixels)

    def read_bytes(self) -> bytes:
        """Returns the combined mask as a PNG file; ImageError if a part is damaged or has another size."""
        combined = None
        for part, value in zip(self.parts, self.values or (None,) * len(self.parts), strict=True):
            pixels = decode_mask_values(read_file(part), str(part), max_pixels=self.max_pixels)
            if combined is None:
                combined = np.zeros_like(pixels)
            if pixels.shape != combined.shape:
                sizes = " and ".join(f"{p.shape[1]}×{p.shape[0]}" for p in (combined, pixels))
                raise ImageError(
                    f"{self} have {sizes} pixels (width × height). Expected masks of one size.",
                    code="masks_of_different_sizes",
                )
            if value is not None:
                combined[pixels > 0] = value
            elif len(distinct_values(pixels)) <= 2:  # each file may have its own value for a defect
                combined[pixels > 0] = 255
            else:
                combined = np.maximum(combined, pixels)
        return encode_png(np.asarray(combined, np.uint8))
