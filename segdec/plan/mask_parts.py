"""Connected parts of a mask."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.plan.measuring import Sizes, measure_part

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class MaskPart:
    """Some pixels of a photograph.

    Attributes:
        window: Rows and columns of the photograph.
        pixels: bool [h, w], which pixels of the window they are.
    """

    window: tuple[slice, slice]
    pixels: Mask

    @cached_property
    def sizes(self) -> Sizes:
        """Sizes of a connected part."""
        return measure_part(self.pixels)

    @property
    def bbox(self) -> tuple[int, int, int, int]:
        """The window: x and y of its upper left corner, width and height, px."""
        height, width = self.pixels.shape
        return self.window[1].start, self.window[0].start, width, height

    def connected_parts(self) -> Iterator["MaskPart"]:
        """Yields the 8-connected parts, each in the smallest window."""
        count, parts, boxes, _ = cv2.connectedComponentsWithStats(self.pixels.view(np.uint8), connectivity=8)
        numbered = np.asarray(parts, np.int32)
        top, left = (side.start for side in self.window)
        for number in range(1, count):
            x, y, width, height = map(int, boxes[number][:4])
            window = np.s_[top + y : top + y + height, left + x : left + x + width]
            yield MaskPart(window, numbered[y : y + height, x : x + width] == number)

    def within(self, mask: Mask) -> "MaskPart":
        """Returns the pixels that are in a mask [H, W] of the photograph, too."""
        return MaskPart(self.window, self.pixels & mask[self.window])

    def without(self, mask: Mask) -> "MaskPart":
        """Returns the pixels that are not in a mask [H, W] of the photograph."""
        return MaskPart(self.window, self.pixels & ~mask[self.window])


def connected_parts(mask: Mask) -> Iterator[MaskPart]:
    """Yields the 8-connected parts of a mask [H, W]."""
    height, width = mask.shape
    return MaskPart(np.s_[0:height, 0:width], mask).connected_parts()
