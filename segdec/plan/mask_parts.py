"""Connected parts of a mask."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.plan.measuring import Sizes, measure_part

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
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
        """Sizes of a connected part in its smallest window."""
        return measure_part(self.pixels)

    @property
    def bbox(self) -> tuple[int, int, int, int]:
        """The window: x and y of its upper left corner, width and height, px."""
        height, width = self.pixels.shape
        return self.window[1].start, self.window[0].start, width, height

    def is_within(self, mask: Mask) -> bool:
        """Returns whether all of the pixels are in a mask [H, W] of the photograph."""
        return not bool((self.pixels & ~mask[self.window]).any())

    def touches(self, mask: Mask) -> bool:
        """Returns whether any of the pixels is in a mask [H, W] of the photograph."""
        return bool((self.pixels & mask[self.window]).any())


class ConnectedParts:
    """The 8-connected parts of some pixels, each in its smallest window."""

    def __init__(self, pixels: MaskPart) -> None:
        self._top, self._left = int(pixels.window[0].start), int(pixels.window[1].start)
        _, numbers, stats, _ = cv2.connectedComponentsWithStats(pixels.pixels.view(np.uint8), connectivity=8)
        self._numbers = np.asarray(numbers, np.int32)  # 0 outside
        self._stats = np.asarray(stats, np.int64)
        self._parts: dict[int, MaskPart] = {}

    @classmethod
    def of_mask(cls, mask: Mask) -> Self:
        """Returns the parts of a mask [H, W]."""
        height, width = mask.shape
        return cls(MaskPart(np.s_[0:height, 0:width], mask))

    def largest_first(self) -> Iterator[MaskPart]:
        """Yields the parts by their number of pixels."""
        areas = self._stats[1:, cv2.CC_STAT_AREA]
        for number in (1 + np.argsort(-areas, kind="stable")).tolist():
            yield self._part(number)

    def around(self, part: MaskPart) -> MaskPart:
        """Returns the part that contains another one."""
        row, column = np.argwhere(part.pixels)[0]
        rows, columns = part.window
        place = rows.start - self._top + row, columns.start - self._left + column
        return self._part(int(self._numbers[place]))

    def _part(self, number: int) -> MaskPart:
        if number not in self._parts:
            x, y, width, height = self._stats[number, :4].tolist()
            top, left = self._top + y, self._left + x
            pixels = self._numbers[y : y + height, x : x + width] == number
            self._parts[number] = MaskPart(np.s_[top : top + height, left : left + width], pixels)
        return self._parts[number]


def connected_parts(mask: Mask) -> list[MaskPart]:
    """Returns the 8-connected parts of a mask [H, W], the largest first."""
    return list(ConnectedParts.of_mask(mask).largest_first())
