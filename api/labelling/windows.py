"""The part of a photograph that a segmentation works on, at full resolution or reduced."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Value = TypeVar("Value", bound=np.generic)

MAX_WHOLE_PX = 640_000
"""Photographs up to this size are one window at full resolution."""
SIDE = 512
"""Side of a window at the resolution that is worked on, px."""
STEPS = 8
"""Windows start at multiples of 1/8 of their side, so that a further click seldom needs another window."""


@dataclass(frozen=True)
class Box:
    """A rectangle of pixels: `left` ≤ x < `right`, `top` ≤ y < `bottom`."""

    left: int
    top: int
    right: int
    bottom: int

    def crop(self, image: NDArray[Value]) -> NDArray[Value]:
        """Returns the part of the photograph or mask that is inside, as a view."""
        return image[self.top : self.bottom, self.left : self.right]

    def moved(self, right: int, down: int) -> "Box":
        """Returns the box so many pixels further to the right and down."""
        return Box(self.left + right, self.top + down, self.right + right, self.bottom + down)

    def contains(self, other: "Box") -> bool:
        """Returns whether the other box is inside."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and self.right >= other.right
            and self.bottom >= other.bottom
        )


@dataclass(frozen=True)
class Window(Box):
    """A box that is worked on at 1/`reduction` of the resolution."""

    reduction: int

    @property
    def reduced_size(self) -> tuple[int, int]:
        """Height and width at the resolution that is worked on, px."""
        return -(-(self.bottom - self.top) // self.reduction), -(-(self.right - self.left) // self.reduction)

    def reduced(self, image: Image) -> Image:
        """Returns the part of the photograph or mask inside at the resolution that is worked on."""
        return self.reduced_part(self.crop(image))

    def reduced_part(self, part: Image) -> Image:
        """Returns the pixels of this box, of a photograph or mask, at the resolution that is worked on."""
        if self.reduction == 1:
            return part
        height, width = self.reduced_size
        scaled = cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA)
        return np.asarray(scaled, np.uint8)

    def has_whole_pixels(self) -> bool:
        """Returns whether each pixel that is worked on covers `reduction` × `reduction` of the photograph."""
        return (self.right - self.left) % self.reduction == (self.bottom - self.top) % self.reduction == 0

    def is_cut(self, mask: Image, height: int, width: int) -> bool:
        """Returns whether a mask [h, w] of the window reaches a side that is not one of the photograph."""
        sides = (
            (self.top > 0, mask[0]),
            (self.bottom < height, mask[-1]),
            (self.left > 0, mask[:, 0]),
            (self.right < width, mask[:, -1]),
        )
        return any(inner and bool(side.any()) for inner, side in sides)


def list_windows(
    inside: Box, height: int, width: int, *, side: int = SIDE, max_whole_px: int = MAX_WHOLE_PX
) -> Iterator[Window]:
    """Yields windows around a box, each twice as wide as the one before; the last is the photograph."""
    whole = Box(0, 0, width, height)
    reduction = 1
    while height * width > max_whole_px * reduction**2:
        left, right = _span(inside.left, inside.right, width, side * reduction)
        top, bottom = _span(inside.top, inside.bottom, height, side * reduction)
        window = Window(left, top, right, bottom, reduction)
        if window.contains(whole):
            break
        if window.contains(inside):
            yield window
        reduction *= 2
    yield Window(0, 0, width, height, reduction)


def _span(first: int, end: int, length: int, side: int) -> tuple[int, int]:
    """Start and end of a window along one side of a photograph."""
    step = side // STEPS
    if length <= side:
        return 0, length
    start = round(((first + end) / 2 - side / 2) / step) * step
    start = min(max(start, 0), length - side)
    return start, start + side
