"""A mask that is drawn from shapes."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.computed_mask import ComputedMask
from segdec.errors import ImageError


class Shape(Protocol):
    """One annotated part of a photograph, in px from its top left corner."""

    @property
    def area_px(self) -> float:
        """Area of this shape alone, regardless of overlaps; decides the class of a photograph."""

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom."""

    def fill(self, mask: NDArray[np.uint8]) -> None:
        """Sets the pixels of the shape in `mask` [H, W] to 255."""


@dataclass(frozen=True)
class DrawnMask(ComputedMask):
    """A mask drawn from an annotation; `str()` returns the location of the annotation.

    Attributes:
        name: File and entry of the annotation, for messages.
        height: Pixels of the photograph.
        width: Pixels.
        shapes: The shapes; they may overlap.
        values: Mask value of each shape, later ones over earlier ones; if empty, 255.
    """

    name: str
    height: int
    width: int
    shapes: tuple[Shape, ...]
    values: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def sources(self) -> tuple[()]:
        return ()

    def draw(self) -> NDArray[np.uint8]:
        """Draws the mask, uint8 [H, W]; defect pixels have 255 or the value of their shape.

        Raises:
            ImageError: If the mask has more than `max_pixels`.
        """
        if self.height * self.width > self.max_pixels:
            raise ImageError(
                f"{self} names a photograph of {self.width} × {self.height} = {self.height * self.width:,} "
                f"pixels. Expected at most {self.max_pixels:,}; raise the limit max_pixels.",
                code="too_many_pixels",
            )
        mask = np.zeros((self.height, self.width), np.uint8)
        if not self.values:
            for shape in self.shapes:
                shape.fill(mask)
            return mask
        for shape, value in zip(self.shapes, self.values, strict=True):
            own = np.zeros_like(mask)
            shape.fill(own)
            mask[own > 0] = value
        return mask
