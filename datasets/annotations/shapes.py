"""What annotation tools draw: polygons, boxes and small bitmaps.

Coordinates count from the top left corner of the picture, as COCO, LabelMe, CVAT and Label Studio count
them: pixel (row r, column c) is the square from (c, r) to (c + 1, r + 1). A pixel belongs to a shape that
holds its centre (c + 0.5, r + 0.5); on an edge, to the shape on its right or below. A polygon that meets
itself is filled by the even-odd rule. A shape too thin to hold any centre marks the pixels it runs
through, so that no annotated scratch is lost.

OpenCV's `fillPoly` is not used: it paints the outline too, half a pixel too much on every side, which
doubles a scratch of one pixel.

A shape that cannot be drawn is a `ValueError` that says so in one sentence; who reads the annotation adds
the place.
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
"""How far a shape may reach over the edge of its picture: tools round, and snap to the edge."""

MAX_COORDINATE_PX = 2.0**24
"""No picture is that large; coordinates beyond it are damage, and would overflow."""


def check_inside(shape: Shape, height: int, width: int) -> None:
    """Refuses a shape that lies outside its picture, wholly or by more than a pixel.

    What reaches over the edge by less is cut off when the shape is drawn.

    Raises:
        ValueError: If it does; names the coordinate.
    """
    left, top, right, bottom = shape.extent
    size = f"{width}×{height} pixels (width × height)"
    if right <= 0 or bottom <= 0 or left >= width or top >= height:
        raise ValueError(
            f"it reaches from ({left:g}, {top:g}) to ({right:g}, {bottom:g}), outside the picture of {size}"
        )
    for axis, low, high, side in (("x", left, right, width), ("y", top, bottom, height)):
        if low < -TOLERANCE_PX or high > side + TOLERANCE_PX:
            value = low if low < -TOLERANCE_PX else high
            raise ValueError(f"{axis} = {value:g} lies outside the picture of {size}")


def numbers(values: object) -> tuple[float, ...]:
    """Returns the numbers of a list as annotation files hold it.

    Raises:
        ValueError: If `values` is no list of finite numbers.
    """
    if not isinstance(values, list | tuple):
        raise ValueError(f"{_short(values)} is no list of numbers")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{_short(value)} is no number")
    return tuple(_finite(value) for value in values)


@dataclass(frozen=True)
class Polygon:
    """What lies within a closed line.

    Attributes:
        points: x and y of its corners, px; the last joins the first. At least three different ones.

    Raises:
        ValueError: If there are fewer, or a coordinate is not finite.
    """

    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        for point in self.points:
            for value in point:
                _finite(value)
        different = len(set(self.points))
        if different < 3:
            raise ValueError(
                f"a polygon of {different} different points encloses nothing; expected at least 3"
            )

    @classmethod
    def from_flat(cls, values: object) -> "Polygon":
        """Reads [x, y, x, y, …] as COCO writes it; raises ValueError as the class, and for an odd count."""
        flat = numbers(values)
        if len(flat) % 2:
            raise ValueError(f"a polygon of {len(flat)} numbers has an x without its y")
        return cls(tuple(zip(flat[::2], flat[1::2], strict=True)))

    @classmethod
    def from_pairs(cls, values: object) -> "Polygon":
        """Reads [[x, y], …] as LabelMe writes it; raises ValueError as the class."""
        if not isinstance(values, list | tuple):
            raise ValueError(f"{_short(values)} is no list of points")
        pairs = [numbers(value) for value in values]
        for pair in pairs:
            if len(pair) != 2:
                raise ValueError(f"a point of {len(pair)} numbers; expected x and y")
        return cls(tuple((pair[0], pair[1]) for pair in pairs))

    @property
    def area_px(self) -> float:
        """Half the sum of the cross products of neighbouring corners."""
        x, y = np.array(self.points).T
        return float(abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2)

    @property
    def extent(self) -> Extent:
        """Left, top, right and bottom, px."""
        x, y = zip(*self.points, strict=True)
        return min(x), min(y), max(x), max(y)

    def fill(self, mask: NDArray[np.uint8]) -> None:
        """Sets the pixels of the polygon in `mask` [H, W] to 255."""
        left, top, right, bottom = self.extent
        columns, rows = _pixels(left, right, mask.shape[1]), _pixels(top, bottom, mask.shape[0])
        corners = np.array(self.points) - (columns.start + 0.5, rows.start + 0.5)  # centres become integers
        part = mask[rows, columns]
        inside = fill_polygon(corners, *part.shape)
        if inside.any():
            part[inside] = 255
        else:
            cv2.polylines(mask, [np.floor(self.points).astype(np.int32)], isClosed=True, color=255)


@dataclass(frozen=True)
class Box:
    """An upright rectangle.

    Attributes:
        x: Of its left edge, px.
        y: Of its upper edge, px.
        width: Px, above 0.
        height: Px, above 0.

    Raises:
        ValueError: If a number is not finite, or a side is not above 0.
    """

    x: float
    y: float
    width: float
    height: float

    def __post_init__(self) -> None:
        for value in (self.x, self.y, self.width, self.height):
            _finite(value)
        if self.width <= 0 or self.height <= 0:
            raise ValueError(f"a box of {self.width:g}×{self.height:g} pixels is empty")

    @classmethod
    def from_list(cls, values: object) -> "Box":
        """Reads [x, y, width, height]; raises ValueError as the class, and for another count."""
        listed = numbers(values)
        if len(listed) != 4:
            raise ValueError(f"a box of {len(listed)} numbers; expected x, y, width and height")
        return cls(*listed)

    @property
    def area_px(self) -> float:
        """Width × height."""
        return self.width * self.height

    @property
    def extent(self) -> Extent:
        """Left, top, right and bottom, px."""
        return self.x, self.y, self.x + self.width, self.y + self.height

    def fill(self, mask: NDArray[np.uint8]) -> None:
        """Sets the pixels of the box in `mask` [H, W] to 255."""
        rows, columns = (
            _centres(self.y, self.height, mask.shape[0]),
            _centres(self.x, self.width, mask.shape[1]),
        )
        mask[rows, columns] = 255


@dataclass(frozen=True)
class Bitmap:
    """A small mask at a place of the picture; packed, because a data set may hold thousands.

    Attributes:
        x: Column of its left pixels.
        y: Row of its upper pixels.
        height: Px.
        width: Px.
        bits: One bit a pixel, row after row, as `numpy.packbits` packs them.
    """

    x: int
    y: int
    height: int
    width: int
    bits: bytes

    @classmethod
    def from_mask(cls, x: int, y: int, mask: NDArray[np.generic]) -> "Bitmap":
        """Takes a mask [H, W]: whatever is not 0 is defect.

        Raises:
            ValueError: If it has no pixel, other than two dimensions, or marks nothing.
        """
        if mask.ndim != 2 or not mask.size:
            raise ValueError(f"a bitmap of the shape {mask.shape}; expected rows and columns")
        if not mask.any():
            raise ValueError("a bitmap that marks no pixel")
        return cls(x, y, mask.shape[0], mask.shape[1], np.packbits(mask != 0).tobytes())

    @property
    def area_px(self) -> float:
        """Number of pixels marked."""
        return float(self._unpacked().sum())

    @property
    def extent(self) -> Extent:
        """Left, top, right and bottom of the whole bitmap, px."""
        return self.x, self.y, self.x + self.width, self.y + self.height

    def fill(self, mask: NDArray[np.uint8]) -> None:
        """Sets the pixels of the bitmap in `mask` [H, W] to 255."""
        left, top, right, bottom = self.x, self.y, self.x + self.width, self.y + self.height
        part = mask[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
        inside = self._unpacked()[max(-top, 0) :, max(-left, 0) :]
        part[inside[: part.shape[0], : part.shape[1]]] = 255

    def _unpacked(self) -> NDArray[np.bool_]:
        bits = np.unpackbits(np.frombuffer(self.bits, np.uint8), count=self.height * self.width)
        return bits.reshape(self.height, self.width).astype(np.bool_)


def _pixels(low: float, high: float, side: int) -> slice:
    """The pixels that a stretch touches along a side of the picture."""
    return slice(min(max(math.floor(low), 0), side), min(max(math.ceil(high), 0), side))


def _centres(start: float, length: float, side: int) -> slice:
    """The pixels whose centres a stretch holds along a side, else the one that it lies in."""
    first, last = math.ceil(start - 0.5), math.ceil(start + length - 0.5)
    if last <= first:
        first, last = math.floor(start), math.floor(start) + 1
    return slice(min(max(first, 0), side), min(max(last, 0), side))


def _finite(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:  # JSON knows whole numbers of any length
        number = math.inf
    if not abs(number) <= MAX_COORDINATE_PX:
        raise ValueError(f"the coordinate {_short(value)} is no place in a picture")
    return number


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
