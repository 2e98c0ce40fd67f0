"""Distances between small pictures after registration: what a small affine motion explains is removed.

Reference:
    P. Simard, Y. LeCun, J. Denker, Efficient pattern recognition using a new transformation distance, NIPS
    1992 (tangent distance); S. Baker, I. Matthews, Lucas-Kanade 20 years on, IJCV 2004 (inverse compositional
    registration).
"""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

ITERATIONS = 3
"""Steps of the registration; two suffice for shifts by 2 %, crops by 4 % and rotations by 2°."""

REFINED = 8
"""Pictures that are registered by more than one step: those that are nearest after it."""

MAX_SHIFT = 0.06
"""Largest shift of the middle, as a share of the side; larger ones are not found by small steps."""

MAX_STRETCH = 0.12
"""Largest difference of an affine matrix from the unit matrix."""

_MIN_GAIN = 0.3  # of the contrast; a smaller one would turn noise into motion
_MIN_LENGTH = 1e-3  # a picture with less contrast is constant


class RegistrationGrid:
    """Pictures of side × side cells, compared without a margin that a small motion moves out of the picture.

    `margin` is the number of cells at each border that are not compared.
    """

    def __init__(self, side: int, margin: int) -> None:
        self._side = side
        self._inner = slice(margin, side - margin)
        self._y, self._x = np.mgrid[:side, :side].astype(np.float32) - (side - 1) / 2

    def unit_row(self, picture: Floats) -> Floats:
        """Returns the inner cells of a picture [side, side]: mean 0, length 1, or 0 if it is constant."""
        return _unit_rows(self._rows([picture])).ravel()

    def tangent_distances(self, picture: Floats, rows: Floats) -> Floats:
        """Returns the distance of each unit row [N, cells] to the tangent plane of `picture`, 0 to 1."""
        basis = np.linalg.qr(self._tangents(picture).T)[0]
        return np.asarray(np.sqrt(np.maximum(0, 1 - np.square(rows @ basis).sum(axis=1))), np.float32)

    def registered_distances(self, picture: Floats, others: Sequence[Floats]) -> Floats:
        """Registers other pictures to `picture` by affine motions.

        Returns:
            float32 [N]: sqrt(1 − correlation²) after the best step; 1 if the correlation is negative.
        """
        tangents, target = self._tangents(picture), self.unit_row(picture)
        solver = np.linalg.pinv(tangents @ tangents.T, hermitian=True) @ tangents
        motions = np.broadcast_to(np.eye(3), (len(others), 3, 3)).copy()
        used = np.arange(len(others))
        rows = self._rows(others)
        distances = _distances(target, rows)
        for step in range(ITERATIONS):
            if step == 1:
                nearest = np.argsort(distances, kind="stable")[:REFINED]
                used, rows = used[nearest], rows[nearest]
            motions[used] = _moved(motions[used], rows @ solver.T, self._side)
            rows = self._rows([self._warped(others[other], motions[other]) for other in used.tolist()])
            distances[used] = np.minimum(distances[used], _distances(target, rows))
        return distances

    def _rows(self, pictures: Sequence[Floats]) -> Floats:
        return np.stack([picture[self._inner, self._inner].ravel() for picture in pictures])

    def _tangents(self, picture: Floats) -> Floats:
        """Rows: the picture, brightness, and its change by x' = (1, x, y) and by y' = (1, x, y)."""
        dx, dy = (
            cv2.Sobel(picture, cv2.CV_32F, *order, scale=1 / 8, borderType=cv2.BORDER_REPLICATE)
            for order in ((1, 0), (0, 1))
        )
        changes = (factor * gradient for gradient in (dx, dy) for factor in (1, self._x, self._y))
        return self._rows([picture, np.ones_like(picture), *(np.asarray(c, np.float32) for c in changes)])

    def _warped(self, picture: Floats, motion: NDArray[np.float64]) -> Floats:
        middle = np.eye(3)
        middle[:2, 2] = (self._side - 1) / 2
        matrix = (middle @ motion @ np.linalg.inv(middle))[:2]
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        size = (self._side, self._side)
        return np.asarray(
            cv2.warpAffine(picture, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE), np.float32
        )


def _moved(motions: NDArray[np.float64], change: Floats, side: int) -> NDArray[np.float64]:
    """Motions [N, 3, 3] after a step given by coefficients [N, 8]; those that get too large stay the same."""
    amounts = (change[:, 2:] / np.maximum(change[:, :1], _MIN_GAIN)).reshape(-1, 2, 3)
    step = np.broadcast_to(np.eye(3), motions.shape).copy()
    step[:, :2, 2] += amounts[:, :, 0]
    step[:, :2, :2] += amounts[:, :, 1:]
    possible = np.abs(step[:, :2, :2] - np.eye(2)).max(axis=(1, 2)) < MAX_STRETCH
    step[~possible] = np.eye(3)
    moved = motions @ np.linalg.inv(step)
    small = np.abs(moved[:, :2, 2]).max(axis=1) < MAX_SHIFT * side
    small &= np.abs(moved[:, :2, :2] - np.eye(2)).max(axis=(1, 2)) < MAX_STRETCH
    return np.where(small[:, None, None], moved, motions)


def _unit_rows(rows: Floats) -> Floats:
    centred = rows - rows.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.where(lengths < _MIN_LENGTH, np.float32(0), centred / np.maximum(lengths, _MIN_LENGTH))


def _distances(target: Floats, rows: Floats) -> Floats:
    correlation = np.clip(_unit_rows(rows) @ target, 0, 1)
    return np.asarray(np.sqrt(1 - correlation * correlation), np.float32)
