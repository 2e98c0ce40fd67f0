"""Polygons, boxes and bitmaps of annotation tools.

Coordinates start at the top left corner of the picture, as in COCO, LabelMe, CVAT and Label Studio: pixel
(row r, column c) is the square from (c, r) to (c + 1, r + 1). A pixel belongs to a shape that contains its
centre (c + 0.5, r + 0.5); a centre on an edge belongs to the shape on its right or below. Polygons are filled
by the even-odd rule. A shape too thin to contain a centre marks the pixels that it crosses, so that no
scratch is lost.

OpenCV's `fillPoly` is not used because it also paints the outline, half a pixel more on each side.

A shape that cannot be drawn raises ValueError; `AnnotationReader` adds the location.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.annotations.drawn_mask import Shape
from segdec.imaging.polygons import fill_polygon

Point = tuple[float, float]
Extent = tuple[float, float, float, float]

TOLERANCE_PX = 1.0
"""Allowed distance outside the picture: tools round coordinates and snap to the edge."""

MAX_COORDINATE_PX = 2.0**24
"""Largest coordinate; larger than any picture, and safe from overflow."""


def check_inside(shape: Shape, height: int, width: int) -> str:
    """Returns a message if a shape exceeds its picture by more than `TOLERANCE_PX`, else an empty string.

    Parts outside are cut off when the shape is drawn.

    Raises:
        ValueError: If the shape is entirely outside.
    """
    left, top, right, bottom = shape.extent
    size = f"{width}×{height} pixels (width × height)"
    if right <= 0 or bottom <= 0 or left >= width or top >= height:
        raise ValueError(
            f"the shape from ({left:g}, {top:g}) to ({right:g}, {bottom:g}) is outside the picture of {size}"
        )
    for axis, low, high, side in (("x", left, right, width), ("y", top, bottom, height)):
        if low < -TOLERANCE_PX or high > side + TOLERANCE_PX:
            value = low if low < -TOLERANCE_PX else high
            return f"{axis} = {value:g} is outside the picture of {size}"
    return ""


def numbers(values: object) -> tuple[float, ...]:
    """Returns `values` as finite numbers; ValueError if it is not a list of these."""
    if not isinstance(values, list | tuple):
        raise ValueError(f"{values!r:.40} is not a list of numbers")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{value!r:.40} is not a number")
    return tuple(finite(value) for value in values)


def read_points(values: object) -> tuple[Point, ...]:
    """Returns [[x, y], …] as points; ValueError if it is not a list of pairs of finite numbers."""
    if not isinstance(values, list | tuple):
        raise ValueError(f"{values!r:.40} is not a list of points")
    pairs = [numbers(value) for value in values]
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(f"a point of {len(pair)} numbers; expected x and y")
    return tuple((pair[0], pair[1]) for pair in pairs)


@dataclass(frozen=True)
class Polygon:
    """A filled polygon.

    Raises:
        ValueError: If it has fewer than three different points, or a coordinate is not finite.
    """

    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        for point in self.points:
            for value in point:
                finite(value)
        different = len(set(self.points))
        if different < 3:
            raise ValueError(f"a polygon of {different} different points has no area; expected at least 3")

    @classmethod
    def from_flat(cls, values: object) -> "Polygon":
        """Reads COCO's [x, y, x, y, …]. Raises ValueError like the constructor, and for an odd count."""
        flat = numbers(values)
        if len(flat) % 2:
            raise ValueError(f"a polygon of {len(flat)} numbers has an x without a y")
        return cls(tuple(zip(flat[::2], flat[1::2], strict=True)))

    @property
    def area_px(self) -> float:
        """Area by the shoelace formula."""
        x, y = np.array(self.points).T
        return float(abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2)

    @property
    def extent(self) -> Extent:
        x, y = zip(*self.points, strict=True)
        return min(x), min(y), max(x), max(y)

    def fill(self, mask: NDArray[np.uint8]) -> None:
        left, top, right, bottom = self.extent
        columns, rows = touched_pixels(left, right, mask.shape[1]), touched_pixels(top, bottom, mask.shape[0])
        part = mask[rows, columns]
        inside = fill_polygon([np.array(self.points) - (columns.start, rows.start)], *part.shape)
        if inside.any():
            part[inside] = 255
        else:
            cv2.polylines(mask, [np.floor(self.points).astype(np.int32)], isClosed=True, color=255)


@dataclass(frozen=True)
class Box:
    """An upright rectangle, px; `x` and `y` are its left and top edge.

    Raises:
        ValueError: If a number is not finite, or a side is not above 0.
    """

    x: float
    y: float
    width: float
    height: float

    def __post_init__(self) -> None:
        for value in (self.x, self.y, self.width, self.height):
            finite(value)
        if self.width <= 0 or self.height <= 0:
            raise ValueError(f"the box of {self.width:g}×{self.height:g} pixels is empty")

    @classmethod
    def from_list(cls, values: object) -> "Box":
        """Reads [x, y, width, height]. Raises ValueError like the constructor, and for another count."""
        listed = numbers(values)
        if len(listed) != 4:
            raise ValueError(f"the box has {len(listed)} numbers; expected x, y, width and height")
        return cls(*listed)

    @property
    def area_px(self) -> float:
        return self.width * self.height

    @property
    def extent(self) -> Extent:
        return self.x, self.y, self.x + self.width, self.y + self.height

    def fill(self, mask: NDArray[np.uint8]) -> None:
        columns = _centres(self.x, self.width, mask.shape[1])
        mask[_centres(self.y, self.height, mask.shape[0]), columns] = 255


@dataclass(frozen=True)
class Bitmap:
    """A mask of a part of the picture, from column `x` and row `y`, px."""

    x: int
    y: int
    height: int
    width: int
    bits: bytes
    """One bit a pixel, row by row, from `numpy.packbits`, to save memory."""

    @classmethod
    def from_mask(cls, x: int, y: int, mask: NDArray[np.generic]) -> "Bitmap":
        """Creates a bitmap from a mask [H, W] whose defect pixels are not 0.

        Raises:
            ValueError: If the mask is empty, does not have two dimensions, or marks nothing.
        """
        if mask.ndim != 2 or not mask.size:
            raise ValueError(f"the bitmap has the shape {mask.shape}; expected rows and columns")
        if not mask.any():
            raise ValueError("the bitmap marks no pixel")
        return cls(x, y, mask.shape[0], mask.shape[1], np.packbits(mask != 0).tobytes())

    @property
    def area_px(self) -> float:
        return float(self._unpacked().sum())

    @property
    def extent(self) -> Extent:
        """Left, top, right and bottom of the whole bitmap, px."""
        return self.x, self.y, self.x + self.width, self.y + self.height

    def fill(self, mask: NDArray[np.uint8]) -> None:
        left, top, right, bottom = self.x, self.y, self.x + self.width, self.y + self.height
        part = mask[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
        inside = self._unpacked()[max(-top, 0) :, max(-left, 0) :]
        part[inside[: part.shape[0], : part.shape[1]]] = 255

    def _unpacked(self) -> NDArray[np.bool_]:
        bits = np.unpackbits(np.frombuffer(self.bits, np.uint8), count=self.height * self.width)
        return bits.reshape(self.height, self.width).astype(np.bool_)


def touched_pixels(low: float, high: float, side: int) -> slice:
    """Returns the pixels that an interval touches along a side of the picture."""
    return slice(min(max(math.floor(low), 0), side), min(max(math.ceil(high), 0), side))


def _centres(start: float, length: float, side: int) -> slice:
    """The pixels whose centres are in an interval along a side, or the pixel around a shorter interval."""
    first, last = math.ceil(start - 0.5), math.ceil(start + length - 0.5)
    if last <= first:
        first, last = math.floor(start), math.floor(start) + 1
    return slice(min(max(first, 0), side), min(max(last, 0), side))


def finite(value: float) -> float:
    """Returns a coordinate; ValueError if it is not finite or larger than `MAX_COORDINATE_PX`."""
    try:
        number = float(value)
    except OverflowError:  # JSON has whole numbers of any length
        number = math.inf
    if not abs(number) <= MAX_COORDINATE_PX:
        raise ValueError(f"the coordinate {value!r:.40} is out of range")
    return number
