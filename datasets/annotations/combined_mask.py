"""One mask made of several mask files."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.class_values import distinct_values
from datasets.annotations.computed_mask import ComputedMask, within_limit
from datasets.annotations.indexed_mask import IndexedMask
from datasets.sample import IGNORED
from segdec.errors import ImageError
from segdec.images import ImageFile, decode_mask_values, read_file


@dataclass(frozen=True)
class CombinedMask(ComputedMask):
    """The masks of one photograph, one file for each defect, as one file.

    Attributes:
        parts: Mask files of the same size.
        values: Value of the pixels above 0 of each part, later ones over earlier ones; if empty, each pixel
            has its highest value. An `IndexedMask` has its own values, and ignored pixels only where the
            parts before it have none.
    """

    parts: tuple[ImageFile, ...]
    values: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts))

    @property
    def sources(self) -> tuple[ImageFile, ...]:
        return self.parts

    def within(self, max_pixels: int) -> Self:
        parts = tuple(within_limit(part, max_pixels) for part in self.parts)
        return replace(self, parts=parts, max_pixels=max_pixels)

    def draw(self) -> NDArray[np.uint8]:
        """Returns the combined mask [H, W]; ImageError if a part is damaged or has another size."""
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
            if isinstance(part, IndexedMask):
                marked = (pixels > 0) & ((pixels < IGNORED) | (combined == 0))
                combined[marked] = pixels[marked]
            elif value is not None:
                combined[pixels > 0] = value
            elif len(distinct_values(pixels)) <= 2:  # each file may have its own value for a defect
                combined[pixels > 0] = 255
            else:
                combined = np.maximum(combined, pixels)
        return np.asarray(combined, np.uint8)
