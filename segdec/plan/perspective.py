"""The plane of the part in a photograph: corrects perspective and lens for measuring."""

import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from segdec.config import Config
from segdec.errors import ConfigError
from segdec.plan.mask_parts import MaskPart

Points = NDArray[np.float64]
"""x and y [N, 2]."""

MAX_RADIAL = 0.5
MAX_SCALE_RATIO = 3.0
"""Limit on the largest scale in the photograph, divided by the smallest."""

SIDE_POINTS = 9
"""Points of a grid along each side of the photograph at which the scale is checked."""

BORDER_STEP_PX = 8.0
"""Distance of the points on the border of a window, since straight lines may become bent."""

NEWTON_STEPS = 6

BLOCK_PIXELS = 2**20
"""Pixels of the plane that are mapped at once, for less memory."""

Coefficient = Annotated[float, Field(ge=-1e6, le=1e6)]


class Perspective(Config):
    """Maps the photograph to the plane of the part, as `segdec plan scale` measures it on a board.

    With d, the place from the centre of the photograph in half diagonals, `matrix`, of 3 × 3 numbers by rows,
    maps d · (1 + radial · |d|²) to mm.
    """

    matrix: Annotated[tuple[Coefficient, ...], Field(min_length=9, max_length=9)]
    radial: Annotated[float, Field(ge=-MAX_RADIAL, le=MAX_RADIAL)] = Field(0.0, description="of the lens")

    def to_mm(self, points: Points, width: int, height: int) -> Points:
        """Returns the places of `points`, px, in the plane, mm; infinite or not a number at the horizon."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return _apply_homography(
                np.reshape(self.matrix, (3, 3)), undistort(points, self.radial, width, height)
            )

    def to_px(self, places: Points, width: int, height: int) -> Points:
        """Returns the points of the photograph, px, of `places` in the plane, mm."""
        straight = _apply_homography(np.linalg.inv(np.reshape(self.matrix, (3, 3))), places)
        radius = np.linalg.norm(straight, axis=1, keepdims=True)
        bent = radius.copy()
        for _ in range(NEWTON_STEPS):  # solves bent · (1 + radial · bent²) = radius
            bent -= (bent * (1 + self.radial * bent**2) - radius) / (1 + 3 * self.radial * bent**2)
        from_centre = straight * np.divide(bent, radius, out=np.ones_like(radius), where=radius > 0)
        return np.asarray(from_centre * (math.hypot(width, height) / 2) + (width / 2, height / 2))


def _apply_homography(matrix: NDArray[np.float64], points: Points) -> Points:
    mapped = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    return np.asarray(mapped[:, :2] / mapped[:, 2:])


def undistort(points: Points, radial: float, width: int, height: int) -> Points:
    """Returns places without the distortion of the lens, in half diagonals from the centre."""
    from_centre = (points - (width / 2, height / 2)) / (math.hypot(width, height) / 2)
    return np.asarray(from_centre * (1 + radial * np.square(from_centre).sum(axis=1, keepdims=True)))


class Plane:
    """The plane of the part, in pixels of equal size; its rows are those of the photograph's centre.

    Args:
        perspective: Maps the photograph to the plane.
        width: Of the photograph, px.
        height: Of the photograph, px.

    Attributes:
        mm_per_px: Side of a pixel of the plane, mm: so small that each pixel of the photograph contains the
            centre of one.
        photograph_px: Side of the largest pixel of the photograph, in pixels of the plane.

    Raises:
        ConfigError: If the scale is very different in parts of the photograph.
    """

    def __init__(self, perspective: Perspective, width: int, height: int) -> None:
        self._perspective, self._size = perspective, (width, height)
        x, y = np.meshgrid(np.linspace(0, width, SIDE_POINTS), np.linspace(0, height, SIDE_POINTS))
        grid = np.column_stack([x.ravel(), y.ravel()])
        right, down = (
            perspective.to_mm(grid + step, width, height) - perspective.to_mm(grid - step, width, height)
            for step in np.array([(0.5, 0.0), (0.0, 0.5)])
        )
        areas = right[:, 0] * down[:, 1] - right[:, 1] * down[:, 0]  # mm² of a pixel
        same_side = (areas > 0).all() or (areas < 0).all()
        if not (np.isfinite(areas).all() and same_side and self._is_on_one_side_of_horizon(grid)):
            raise ConfigError("The perspective folds the photograph. Measurement it again on a board.")
        sides = np.linalg.svd(np.stack([right, down], axis=1), compute_uv=False)
        smallest, largest = float(sides.min()), float(sides.max())
        if largest > MAX_SCALE_RATIO * smallest:
            raise ConfigError(
                f"The scale in the photograph differs by a factor of {largest / smallest:.1f}. Expected at "
                f"most {MAX_SCALE_RATIO:g}: place the camera above the part."
            )
        self.mm_per_px = smallest / math.sqrt(2)
        self.photograph_px = largest / self.mm_per_px
        centre = len(grid) // 2
        along = right[centre] / np.linalg.norm(right[centre])
        across = np.array([-along[1], along[0]]) * np.sign(areas[centre])
        self._axes = np.stack([along, across]) / self.mm_per_px

    def _is_on_one_side_of_horizon(self, grid: Points) -> bool:
        """Returns whether the whole photograph is on one side of the horizon."""
        straight = undistort(grid, self._perspective.radial, *self._size)
        matrix = np.reshape(self._perspective.matrix, (3, 3))
        depths = np.column_stack([straight, np.ones(len(straight))]) @ matrix[2]
        return bool((depths > 0).all() or (depths < 0).all())

    def flatten(self, part: MaskPart) -> MaskPart:
        """Returns a part of the photograph in the plane: the pixels whose centre is in one of its pixels.

        Its window may begin at negative rows and columns.
        """
        x, y, width, height = part.bbox
        border = self._to_plane(_border(x, y, width, height))
        left, top = np.floor(border.min(axis=0)).astype(int).tolist()
        right, bottom = np.ceil(border.max(axis=0)).astype(int).tolist()
        flat = np.zeros((bottom - top, right - left), np.bool_)
        step = max(BLOCK_PIXELS // (right - left), 1)
        for first in range(0, bottom - top, step):
            block = flat[first : first + step]
            x_of, y_of = np.meshgrid(
                np.arange(left, right) + 0.5, np.arange(top + first, top + first + len(block)) + 0.5
            )
            places = self._to_photograph(np.column_stack([x_of.ravel(), y_of.ravel()]))
            pixels = np.floor(places).astype(np.int64) - (x, y)
            inside = ((pixels >= 0) & (pixels < (width, height))).all(axis=1)
            block.reshape(-1)[inside] = part.pixels[pixels[inside, 1], pixels[inside, 0]]
        rows, columns = np.flatnonzero(flat.any(axis=1)), np.flatnonzero(flat.any(axis=0))
        smallest = flat[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        top, left = top + int(rows[0]), left + int(columns[0])
        return MaskPart(np.s_[top : top + smallest.shape[0], left : left + smallest.shape[1]], smallest)

    def _to_photograph(self, places: Points) -> Points:
        return self._perspective.to_px(places @ np.linalg.inv(self._axes).T, *self._size)

    def _to_plane(self, points: Points) -> Points:
        return np.asarray(self._perspective.to_mm(points, *self._size) @ self._axes.T)


def _border(x: int, y: int, width: int, height: int) -> Points:
    """Returns points on the border of a window, px."""
    across = np.linspace(x, x + width, 2 + math.ceil(width / BORDER_STEP_PX))
    down = np.linspace(y, y + height, 2 + math.ceil(height / BORDER_STEP_PX))
    return np.concatenate(
        [
            *(np.column_stack([across, np.full(len(across), side)]) for side in (y, y + height)),
            *(np.column_stack([np.full(len(down), side), down]) for side in (x, x + width)),
        ]
    )
