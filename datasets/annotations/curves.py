"""Ellipses, rotated boxes, lines and points; see `datasets.annotations.shapes` for coordinates."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.shapes import MAX_COORDINATE_PX, Extent, Point, Polygon, finite, touched_pixels

LINE_WIDTH_PX = 10.0
"""Width of a drawn line or point: annotations have no width, and LabelMe draws 10 px."""

CURVE_ERROR_PX = 0.01
"""Largest distance between an ellipse and its polygon."""


def ellipse(cx: float, cy: float, rx: float, ry: float, degrees: float = 0.0) -> Polygon:
    """Returns the ellipse with centre (cx, cy) and half axes rx and ry, rotated clockwise about its centre.

    Raises:
        ValueError: If an axis is not above 0, or a number is not finite.
    """
    if not (0 < rx <= MAX_COORDINATE_PX and 0 < ry <= MAX_COORDINATE_PX):
        raise ValueError(
            f"the ellipse has half axes of {rx:g} and {ry:g} pixels; expected finite and above 0"
        )
    corners = max(16, math.ceil(math.pi / math.sqrt(2 * CURVE_ERROR_PX / max(rx, ry))))
    turns = [2 * math.pi * corner / corners for corner in range(corners)]
    return rotated(
        [(cx + rx * math.cos(turn), cy + ry * math.sin(turn)) for turn in turns], (cx, cy), degrees
    )


def rotated(corners: list[Point], pivot: Point, degrees: float) -> Polygon:
    """Returns the polygon of `corners`, rotated clockwise about `pivot`; raises the errors of `Polygon`."""
    angle = math.radians(degrees) if math.isfinite(degrees) else math.nan
    cos, sin = math.cos(angle), math.sin(angle)
    moved = [(x - pivot[0], y - pivot[1]) for x, y in corners]
    return Polygon(tuple((pivot[0] + x * cos - y * sin, pivot[1] + x * sin + y * cos) for x, y in moved))


def box_corners(x: float, y: float, width: float, height: float) -> list[Point]:
    """Returns the corners of an upright box, clockwise from the top left; ValueError for an empty box."""
    if not (width > 0 and height > 0):
        raise ValueError(f"the box of {width:g}×{height:g} pixels is empty")
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


@dataclass(frozen=True)
class Line:
    """An open line with a width and round ends; a disc for a single point.

    Raises:
        ValueError: If there is no point, or a coordinate is not finite.
    """

    points: tuple[Point, ...]
    width_px: float = LINE_WIDTH_PX

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("the line has no points")
        for value in (value for point in self.points for value in point):
            finite(value)

    @property
    def area_px(self) -> float:
        """Length × width plus the round ends."""
        length = sum(math.dist(a, b) for a, b in zip(self.points, self.points[1:], strict=False))
        return length * self.width_px + math.pi * (self.width_px / 2) ** 2

    @property
    def extent(self) -> Extent:
        """Left, top, right and bottom of the line at a width of one pixel: annotations have no width."""
        x, y = zip(*self.points, strict=True)
        return min(x) - 0.5, min(y) - 0.5, max(x) + 0.5, max(y) + 0.5

    def fill(self, mask: NDArray[np.uint8]) -> None:
        """Sets the pixels with centres within half the width of the line to 255 in `mask` [H, W]."""
        for start, end in zip(self.points, self.points[1:] or self.points, strict=False):
            self._fill_segment(mask, start, end)

    def _fill_segment(self, mask: NDArray[np.uint8], start: Point, end: Point) -> None:
        reach = self.width_px / 2
        rows = touched_pixels(min(start[1], end[1]) - reach, max(start[1], end[1]) + reach, mask.shape[0])
        columns = touched_pixels(min(start[0], end[0]) - reach, max(start[0], end[0]) + reach, mask.shape[1])
        y = np.arange(rows.start, rows.stop)[:, None] + 0.5 - start[1]
        x = np.arange(columns.start, columns.stop)[None, :] + 0.5 - start[0]
        dx, dy = end[0] - start[0], end[1] - start[1]
        along = np.clip((x * dx + y * dy) / ((dx * dx + dy * dy) or 1.0), 0, 1)
        near = (x - along * dx) ** 2 + (y - along * dy) ** 2 <= reach * reach
        mask[rows, columns][near] = 255
