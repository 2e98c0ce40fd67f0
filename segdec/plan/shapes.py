"""Shapes of zones, drawn as masks."""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from segdec.config import Config
from segdec.imaging.inspected_area import decode_mask
from segdec.imaging.polygons import fill_polygon
from segdec.plan.mask_parts import Mask

Coordinate = Annotated[float, Field(ge=0.0, le=2**16)]
Extent = Annotated[float, Field(gt=0.0, le=2**16)]
Point = tuple[Coordinate, Coordinate]
"""x and y, px, from the upper left corner of the photograph."""

MIN_CORNERS, MAX_CORNERS = 3, 500
"""Number of corners of a polygon."""


class Circle(Config):
    """A circle."""

    center: Point
    radius: Extent


class Ring(Config):
    """The area between two circles with the same centre."""

    center: Point
    inner_radius: Extent
    outer_radius: Extent

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.inner_radius >= self.outer_radius:
            raise ValueError(
                f"inner_radius={self.inner_radius:g} is not below outer_radius={self.outer_radius:g}; "
                "expected a smaller one"
            )
        return self


class Rectangle(Config):
    """A rectangle with vertical and horizontal sides."""

    corner: Point = Field(description="upper left corner")
    width: Extent
    height: Extent


@dataclass(frozen=True)
class DrawnMask:
    """The base64 of a grey PNG of the photograph's size, above 0 inside."""

    png: str

    @property
    def pixels(self) -> Mask:
        """Which pixels are inside, [H, W]."""
        return np.asarray(decode_mask(self.png) > 0)


def _check_corners(corners: tuple[Point, ...]) -> tuple[Point, ...]:
    if not MIN_CORNERS <= len(corners) <= MAX_CORNERS:
        raise ValueError(f"{len(corners)} corners; expected {MIN_CORNERS} to {MAX_CORNERS}")
    if len(set(corners)) < len(corners):
        raise ValueError("two equal corners; expected each corner once, and the first not again at the end")
    if (crossing := find_crossing(np.array(corners, np.float64))) is not None:
        one, other = (f"({x:g}, {y:g})" for x, y in (corners[number] for number in crossing))
        raise ValueError(
            f"the sides that begin at {one} and {other} cross each other; expected a polygon whose sides "
            "meet only at its corners: change the order of the corners"
        )
    return corners


Polygon = Annotated[tuple[Point, ...], AfterValidator(_check_corners)]
Shape = Circle | Ring | Rectangle | DrawnMask | tuple[Point, ...]


def find_crossing(corners: NDArray[np.float64]) -> tuple[int, int] | None:
    """Returns two sides of a polygon [N, 2] that cross or touch, by their first corners, or None."""
    sides = np.roll(corners, -1, axis=0) - corners

    def turns(points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns on which side of each side [N] each point [M] is: 1, −1, or 0 on its line; [N, M]."""
        from_start = points[None] - corners[:, None]
        return np.sign(sides[:, None, 0] * from_start[..., 1] - sides[:, None, 1] * from_start[..., 0])

    of_starts = turns(corners)
    separated = of_starts * np.roll(of_starts, -1, axis=1) <= 0  # both ends of the other side
    starts = np.minimum(corners, np.roll(corners, -1, axis=0))
    ends = np.maximum(corners, np.roll(corners, -1, axis=0))
    boxes_meet = ((starts[:, None] <= ends[None]) & (starts[None] <= ends[:, None])).all(axis=2)
    neighbours = np.eye(len(corners), dtype=bool)
    neighbours |= np.roll(neighbours, 1, axis=0) | np.roll(neighbours, -1, axis=0)
    found = np.argwhere(np.triu(separated & separated.T & boxes_meet & ~neighbours))
    return (int(found[0, 0]), int(found[0, 1])) if len(found) else None


def bounds(shape: Shape) -> tuple[float, float, float, float]:
    """Returns the smallest x and y and the largest x and y of a shape, px."""
    match shape:
        case Circle(center=(x, y), radius=radius) | Ring(center=(x, y), outer_radius=radius):
            return x - radius, y - radius, x + radius, y + radius
        case Rectangle(corner=(x, y), width=width, height=height):
            return x, y, x + width, y + height
        case DrawnMask(pixels=pixels):
            return 0.0, 0.0, float(pixels.shape[1]), float(pixels.shape[0])
        case _:
            xs, ys = zip(*shape, strict=True)
            return min(xs), min(ys), max(xs), max(ys)


def draw(shape: Shape, height: int, width: int) -> Mask:
    """Returns the pixels [height, width] whose centre is in the shape."""
    if isinstance(shape, Circle):
        return _draw_disc(shape.center, shape.radius, height, width)
    if isinstance(shape, Ring):
        outer, inner = (
            _draw_disc(shape.center, radius, height, width)
            for radius in (shape.outer_radius, shape.inner_radius)
        )
        return outer & ~inner
    if isinstance(shape, DrawnMask):
        return shape.pixels
    if isinstance(shape, Rectangle):
        left, top, right, bottom = bounds(shape)
        shape = ((left, top), (right, top), (right, bottom), (left, bottom))
    return fill_polygon([np.array(shape, np.float64)], height, width)


def _draw_disc(center: Point, radius: float, height: int, width: int) -> Mask:
    x, y = center
    squares = radius**2 - (np.arange(height) + 0.5 - y) ** 2
    half = np.where(squares >= 0, np.sqrt(np.maximum(squares, 0)), -1)[:, None]  # of each row's chord
    columns = np.arange(width) + 0.5
    return np.asarray((x - half <= columns) & (columns <= x + half))
