"""Zones of an inspection plan: their shapes, drawn as masks."""

from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from segdec.config import Config
from segdec.imaging.polygons import fill_polygon

Mask = NDArray[np.bool_]
Position = Annotated[float, Field(ge=0.0, le=2**15)]
Length = Annotated[float, Field(gt=0.0, le=2**15)]
Point = tuple[Position, Position]
"""x and y, px, from the upper left corner of the photograph."""

MIN_CORNERS, MAX_CORNERS = 3, 500
"""Corners of a polygon."""


def _check_corners(corners: tuple[Point, ...]) -> tuple[Point, ...]:
    if not MIN_CORNERS <= len(corners) <= MAX_CORNERS:
        raise ValueError(f"{len(corners)} corners; expected {MIN_CORNERS} to {MAX_CORNERS}")
    if (crossing := find_crossing(np.array(corners, np.float64))) is not None:
        one, other = (f"({x:g}, {y:g})" for x, y in (corners[place] for place in crossing))
        raise ValueError(
            f"the sides that begin at {one} and {other} cross each other; expected a polygon whose sides "
            "meet only at its corners: change the order of the corners"
        )
    return corners


def find_crossing(corners: NDArray[np.float64]) -> tuple[int, int] | None:
    """Returns the first two sides of a polygon [N, 2] that cross or touch, by their first corners; or None."""
    ends = np.roll(corners, -1, axis=0)
    sides = ends - corners

    def turn(points: NDArray[np.float64]) -> NDArray[np.float64]:
        """On which side of each side [N] each point [M] is: positive, negative or 0; [N, M]."""
        from_start = points[None] - corners[:, None]
        return np.sign(sides[:, None, 0] * from_start[..., 1] - sides[:, None, 1] * from_start[..., 0])

    starts_apart, ends_apart = turn(corners), turn(ends)
    separated = starts_apart * ends_apart  # negative: the other side's ends are on both sides
    crosses = (separated <= 0) & (separated.T <= 0)
    neighbours = np.eye(len(corners), dtype=bool)
    neighbours |= np.roll(neighbours, 1, axis=0) | np.roll(neighbours, -1, axis=0)
    found = np.argwhere(np.triu(crosses & ~neighbours))
    return (int(found[0, 0]), int(found[0, 1])) if len(found) else None


class Circle(Config):
    """A circle."""

    center: Point
    radius: Length


class Ring(Config):
    """The area between two circles with the same centre."""

    center: Point
    inner_radius: Length
    outer_radius: Length

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.inner_radius >= self.outer_radius:
            raise ValueError(
                f"inner_radius={self.inner_radius:g} is not below outer_radius={self.outer_radius:g}; expected "
                "a smaller one"
            )
        return self


class Rectangle(Config):
    """A rectangle with vertical and horizontal sides."""

    corner: Point = Field(description="upper left corner")
    width: Length
    height: Length


Polygon = Annotated[tuple[Point, ...], AfterValidator(_check_corners)]
Shape = Literal["polygon", "rectangle", "circle", "ring"]
