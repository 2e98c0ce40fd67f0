"""Measures the plane of the part on the photograph of a board."""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.errors import ConfigError, ImageError
from segdec.plan.perspective import MAX_RADIAL, Perspective, Points, undistort

MIN_CORNERS = 12
MAX_MARKER_SHARE = 0.95
"""Limit on the side of a marker, relative to its square."""

SEARCHES = 4
"""Searches of the lens's distortion; each is ten times as fine as the one before."""


@dataclass(frozen=True)
class Board:
    """A checkerboard, or a ChArUco board if it has a dictionary.

    Attributes:
        columns: Squares in a row.
        rows: Squares in a column.
        square_mm: Side of a square, mm.
        dictionary: Name of the ArUco dictionary, for example `DICT_4X4_50`; None: a checkerboard.
        marker_mm: Side of a marker, mm.
    """

    columns: int
    rows: int
    square_mm: float
    dictionary: str | None = None
    marker_mm: float = 0.0

    def find_corners(self, photograph: NDArray[np.uint8]) -> tuple[Points, Points]:
        """Finds the inner corners of the board in a photograph [H, W, 1 or 3].

        Returns:
            Places in the photograph, px, and on the board, mm, both [N, 2].

        Raises:
            ImageError: With the code `board_not_found`.
            ConfigError: If there is no such dictionary, or the markers are larger than the squares.
        """
        grey = photograph[..., 0]
        if photograph.shape[2] == 3:
            grey = np.asarray(cv2.cvtColor(photograph, cv2.COLOR_RGB2GRAY), np.uint8)
        places, numbers = self._checkerboard(grey) if self.dictionary is None else self._charuco(grey)
        if len(places) < MIN_CORNERS:
            raise ImageError(
                f"The board of {self.columns} × {self.rows} squares was not found. Expected a sharp "
                "photograph with a white border around the board; check the number of squares.",
                code="board_not_found",
            )
        on_board = np.stack([numbers % (self.columns - 1), numbers // (self.columns - 1)], axis=1)
        # Pixel x, y is the square from x, y to x + 1, y + 1.
        return places + 0.5, np.asarray(on_board * self.square_mm, np.float64)

    def _checkerboard(self, grey: NDArray[np.uint8]) -> tuple[Points, NDArray[np.int64]]:
        size = self.columns - 1, self.rows - 1
        found, corners = cv2.findChessboardCornersSB(grey, size, flags=cv2.CALIB_CB_ACCURACY)
        return _as_points(corners if found else None), np.arange(size[0] * size[1], dtype=np.int64)

    def _charuco(self, grey: NDArray[np.uint8]) -> tuple[Points, NDArray[np.int64]]:
        number = getattr(cv2.aruco, str(self.dictionary), None)
        if not str(self.dictionary).startswith("DICT_") or number is None:
            raise ConfigError(f"Unknown dictionary '{self.dictionary}'. Expected one such as DICT_4X4_50.")
        if not 0 < self.marker_mm <= MAX_MARKER_SHARE * self.square_mm:
            raise ConfigError(
                f"Markers of {self.marker_mm:g} mm in squares of {self.square_mm:g} mm. Expected smaller "
                "markers."
            )
        dictionary = cv2.aruco.getPredefinedDictionary(number)
        if (available := len(dictionary.bytesList)) < (needed := self.columns * self.rows // 2):
            raise ConfigError(
                f"A board of {self.columns} × {self.rows} squares has {needed} markers, but "
                f"{self.dictionary} has {available}. Expected the dictionary and the squares of the board."
            )
        board = cv2.aruco.CharucoBoard((self.columns, self.rows), self.square_mm, self.marker_mm, dictionary)
        corners, numbers, _, _ = cv2.aruco.CharucoDetector(board).detectBoard(grey)
        return _as_points(corners), np.asarray(() if numbers is None else numbers, np.int64).ravel()


def _as_points(corners: Any) -> Points:
    return np.zeros((0, 2)) if corners is None else np.asarray(corners, np.float64).reshape(-1, 2)


@dataclass(frozen=True)
class MeasuredPlane:
    """The perspective of a photograph.

    Attributes:
        perspective: Maps the photograph to the plane of the board.
        error_mm: Root mean square of the errors at the corners of the board, mm.
        covered: Share of the photograph that the corners cover.
    """

    perspective: Perspective
    error_mm: float
    covered: float


def measure_plane(places: Points, on_board: Points, width: int, height: int) -> MeasuredPlane:
    """Fits perspective and distortion of the lens to corners of a board.

    Args:
        places: In a photograph of `width` × `height` px, [N, 2].
        on_board: The same corners in the plane, mm, [N, 2].
        width: Of the photograph, px.
        height: Of the photograph, px.

    Raises:
        ImageError: With the code `board_not_found`, if the corners are on one line.
    """

    def fit(radial: float) -> MeasuredPlane:
        matrix, _ = cv2.findHomography(undistort(places, radial, width, height), on_board)
        if matrix is None:
            raise ImageError(
                "The corners of the board that are visible are on one line. Expected more of the board.",
                code="board_not_found",
            )
        perspective = Perspective(matrix=tuple(np.asarray(matrix).ravel().tolist()), radial=radial)
        errors = perspective.to_mm(places, width, height) - on_board
        return MeasuredPlane(perspective, float(np.sqrt(np.square(errors).sum(axis=1).mean())), covered)

    hull = np.asarray(cv2.convexHull(places.astype(np.float32)), np.float32)
    covered = cv2.contourArea(hull) / (width * height)
    best, width_of_search = fit(0.0), MAX_RADIAL
    for _ in range(SEARCHES):
        centre = best.perspective.radial
        tried = np.clip(centre + width_of_search * np.linspace(-1, 1, 21), -MAX_RADIAL, MAX_RADIAL)
        best = min([best, *map(fit, tried.tolist())], key=lambda plane: plane.error_mm)
        width_of_search /= 10
    return best
