"""The plane of the part in a photograph: corrects perspective and lens for measuring."""

import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from segdec.config import Config
from segdec.errors import ConfigError
from segdec.imaging.polygons import fill_polygon, trace_outlines
from segdec.plan.mask_parts import MaskPart

Points = NDArray[np.float64]
"""x and y [N, 2]."""

MAX_RADIAL = 0.5
MAX_SCALE_RATIO = 3.0
"""Limit on the largest scale in the photograph, divided by the median."""

SIDE_POINTS = 9
"""Points of a grid along each side of the photograph at which the scale is checked."""

MAX_STEP_PX = 4.0
"""Longest side of an outline, since straight lines may become bent."""

Coefficient = Annotated[float, Field(ge=-1e6, le=1e6)]


class Perspective(Config):
    """Maps the photograph to the plane of the part, as `segdec plan scale` measures it on a board.

    With d, the place from the centre of the photograph in half diagonals, `matrix`, of 3 × 3 numbers by rows,
    maps d · (1 + radial · |d|²) to mm.
    """

    matrix: Annotated[tuple[Coefficient, ...], Field(min_length=9, max_length=9)]
    radial: Annotated[float, Field(ge=-MAX_RADIAL, le=MAX_RADIAL)] = Field(0.0, description="of the lens")

    def to_mm(self, points: Points, width: int, height: int) -> Points:
        """Returns the places of `points`, px, in the plane, mm."""
        straight = undistort(points, self.radial, width, height)
        mapped = np.column_stack([straight, np.ones(len(straight))]) @ np.reshape(self.matrix, (3, 3)).T
        return np.asarray(mapped[:, :2] / mapped[:, 2:])


def undistort(points: Points, radial: float, width: int, height: int) -> Points:
    """Returns places without the distortion of the lens, in half diagonals from the centre."""
    from_centre = (points - (width / 2, height / 2)) / (math.hypot(width, height) / 2)
    return np.asarray(from_centre * (1 + radial * np.square(from_centre).sum(axis=1, keepdims=True)))


class Plane:
    """The plane of the part, in pixels of equal size.

    Args:
        perspective: Maps the photograph to the plane.
        width: Of the photograph, px.
        height: Of the photograph, px.

    Attributes:
        mm_per_px: Side of a pixel of the plane, mm: the mean of the photograph.

    Raises:
        ConfigError: If the scale is very different in parts of the photograph.
    """

    def __init__(self, perspective: Perspective, width: int, height: int) -> None:
        self._perspective, self._size = perspective, (width, height)
        x, y = np.meshgrid(np.linspace(0, width, SIDE_POINTS), np.linspace(0, height, SIDE_POINTS))
        with np.errstate(all="ignore"):
            mm = perspective.to_mm(np.column_stack([x.ravel(), y.ravel()]), width, height)
        grid = mm.reshape(SIDE_POINTS, SIDE_POINTS, 2)
        down, right = np.diff(grid, axis=0)[:, :-1], np.diff(grid, axis=1)[:-1]
        areas = right[..., 0] * down[..., 1] - right[..., 1] * down[..., 0]  # mm², of one orientation
        mean = float(np.abs(areas).mean())
        if not ((areas > 0).all() or (areas < 0).all()):
            raise ConfigError("The perspective folds the photograph. Measure it again on a board.")
        ratio = math.sqrt(float(np.abs(areas).max() / np.median(np.abs(areas))))
        if ratio > MAX_SCALE_RATIO:
            raise ConfigError(
                f"A part of the photograph has {ratio:.1f} times the usual scale. Expected at most "
                f"{MAX_SCALE_RATIO:g} times: place the camera above the part."
            )
        self.mm_per_px = math.sqrt(mean * (SIDE_POINTS - 1) ** 2 / (width * height))
        self._origin = np.floor(mm.min(axis=0) / self.mm_per_px) - 1

    def flatten(self, part: MaskPart) -> MaskPart:
        """Returns a part of the photograph in the plane."""
        x, y, _, _ = part.bbox
        rings = [
            ring
            for outer, holes in trace_outlines(part.pixels.view(np.uint8), x, y)
            for ring in (outer, *holes)
        ]
        places = [self._to_plane(ring) for ring in rings]
        everything = np.concatenate(places)
        (left, top), (right, bottom) = np.floor(everything.min(axis=0)), np.ceil(everything.max(axis=0))
        left, top, right, bottom = (int(side) for side in (left, top, right, bottom))
        pixels = fill_polygon([place - (left, top) for place in places], bottom - top, right - left)
        if not pixels.any():  # smaller than a pixel
            pixels = np.ones((1, 1), np.bool_)
        height, width = pixels.shape
        return MaskPart(np.s_[top : top + height, left : left + width], pixels)

    def _to_plane(self, ring: tuple[tuple[int, int], ...]) -> Points:
        corners = np.array(ring, np.float64)
        ends = np.roll(corners, -1, axis=0)
        steps = np.ceil(np.linalg.norm(ends - corners, axis=1) / MAX_STEP_PX).astype(int)
        shares = np.concatenate([np.arange(count) / count for count in steps])[:, None]
        line = np.repeat(corners, steps, axis=0) * (1 - shares) + np.repeat(ends, steps, axis=0) * shares
        return np.asarray(self._perspective.to_mm(line, *self._size) / self.mm_per_px - self._origin)
