"""A mask that is drawn from shapes and reads like a file."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError
from segdec.images import DEFAULT_MAX_PIXELS, encode_png


class Shape(Protocol):
    """One annotated part of a photograph."""

    @property
    def area_px(self) -> float:
        """Of the shape alone, whatever else is drawn; decides which class a photograph has."""

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom, px from the top left corner of the photograph."""

    def fill(self, mask: NDArray[np.uint8]) -> None:
        """Sets the pixels of the shape in `mask` [H, W] to 255."""


@dataclass(frozen=True)
class DrawnMask:
    """The mask file that an annotation stands for; `str()` of it names the annotation.

    Whoever reads masks reads a drawn one like any other, packs it and takes its digest.

    Attributes:
        name: Where the annotation stands, for messages: file and entry.
        height: Of the photograph, px.
        width: Of the photograph, px.
        shapes: What is drawn; they may overlap.
        max_pixels: A larger one is not drawn: an annotation can name any size.
        values: What each shape's pixels become, later ones over earlier ones; none = 255.
    """

    name: str
    height: int
    width: int
    shapes: tuple[Shape, ...]
    max_pixels: int = DEFAULT_MAX_PIXELS
    values: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.name

    def within(self, max_pixels: int) -> "DrawnMask":
        """Returns the same mask with another limit."""
        return replace(self, max_pixels=max_pixels)

    def draw(self) -> NDArray[np.uint8]:
        """Draws the mask, uint8 [H, W], 255, or the shape's value, where there is a defect.

        Raises:
            ImageError: If it has more than `max_pixels`.
        """
        if self.height * self.width > self.max_pixels:
            raise ImageError(
                f"{self} is of a photograph of {self.width} × {self.height} = {self.height * self.width:,} "
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

    def read_bytes(self) -> bytes:
        """Returns the mask as a PNG file; raises as `draw`."""
        return encode_png(self.draw())
