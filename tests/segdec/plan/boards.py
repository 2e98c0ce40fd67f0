"""Renders photographs of a board, and of defects in its plane, by a known perspective."""

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.plan.perspective import Perspective

WIDTH, HEIGHT = 800, 600
OBLIQUE = Perspective(matrix=(72.0, 4.0, 35.0, -3.0, 72.0, 25.0, 0.1, -0.2, 1.0), radial=-0.05)
"""Up to 0.27 mm per px on one side, and 0.17 on the other; with a lens."""

COLUMNS, ROWS, SQUARE_MM = 9, 7, 10.0
OVERSAMPLING = 3


def places_mm(perspective: Perspective, oversampling: int = 1) -> NDArray[np.float64]:
    """Places of the centres of all pixels in the plane, mm, [H, W, 2]."""
    x, y = np.meshgrid(*((np.arange(side * oversampling) + 0.5) / oversampling for side in (WIDTH, HEIGHT)))
    points = np.column_stack([x.ravel(), y.ravel()])
    return perspective.to_mm(points, WIDTH, HEIGHT).reshape(*x.shape, 2)


def checkerboard(perspective: Perspective) -> NDArray[np.uint8]:
    """A photograph [H, W, 1] whose first inner corner is at 0 mm, 0 mm."""
    squares = np.floor(places_mm(perspective, OVERSAMPLING) / SQUARE_MM)
    column, row = squares[..., 0], squares[..., 1]
    dark = (
        ((column + row) % 2 == 0) & (column >= -1) & (column < COLUMNS - 1) & (row >= -1) & (row < ROWS - 1)
    )
    return _photograph(np.where(dark, 40, 220))


def charuco(perspective: Perspective, name: str, marker_mm: float) -> NDArray[np.uint8]:
    """A photograph [H, W, 1] of a ChArUco board whose first inner corner is at 0 mm, 0 mm."""
    dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, name))
    board = cv2.aruco.CharucoBoard((COLUMNS, ROWS), SQUARE_MM, marker_mm, dictionary)
    drawn = board.generateImage((COLUMNS * 100, ROWS * 100))
    at = np.floor((places_mm(perspective, OVERSAMPLING) + SQUARE_MM) / SQUARE_MM * 100).astype(int)
    inside = ((at >= 0) & (at < (COLUMNS * 100, ROWS * 100))).all(axis=2)
    return _photograph(np.where(inside, drawn[at[..., 1] * inside, at[..., 0] * inside], 220))


def _photograph(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    reduced = cv2.resize(values.astype(np.float32), (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    return np.rint(reduced).astype(np.uint8)[..., None]


def scratch(
    perspective: Perspective, start: tuple[float, float], end: tuple[float, float], width: float
) -> NDArray[np.bool_]:
    """The mask [H, W] of a scratch with round ends between two places of the plane, mm."""
    places, one, other = places_mm(perspective), np.array(start), np.array(end)
    along = np.clip((places - one) @ (other - one) / np.square(other - one).sum(), 0, 1)[..., None]
    return np.linalg.norm(places - one - along * (other - one), axis=2) <= width / 2
