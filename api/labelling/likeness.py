"""How much each pixel looks like the clicked defects rather than like the rest of the photograph."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from api.labelling.pixel_features import Floats

Vector = NDArray[np.float64]

MAX_SAMPLES = 6000
"""Pixels that describe the surface."""
SHRINKAGE = 0.5
"""Weight of the unit matrix in the covariance of the features: few clicks do not fix all directions."""
NEGATIVE_WEIGHT = 0.3
"""Weight of a click that is not a defect, relative to the whole surface."""
SAMPLE_RADIUS = 5
"""Radius of the disc around a click whose mean describes it, px."""


class Likeness:
    """A linear discriminant on features of pixels: the surface has the value 0, the clicked defects 1.

    Defects are small, so the mean and covariance of all pixels are those of the good surface.

    Args:
        features: [H, W, D].
    """

    def __init__(self, features: Floats) -> None:
        height, width, depth = features.shape
        step = max(1, int((height * width / MAX_SAMPLES) ** 0.5))
        surface = features[::step, ::step].reshape(-1, depth)
        self.features = features
        self._mean, self._deviation = surface.mean(axis=0), surface.std(axis=0) + np.float32(1e-3)
        surface = ((surface - self._mean) / self._deviation).astype(np.float64)
        covariance = cv2.mulTransposed(surface, True) / len(surface)
        self.covariance = (1 - SHRINKAGE) * covariance + SHRINKAGE * np.eye(depth)

    def sample(self, x: int, y: int, radius: float) -> Vector:
        """Returns the mean features [D] of a disc around a pixel, normalised by those of the surface."""
        reach = max(1, int(min(radius, SAMPLE_RADIUS)))
        height, width = self.features.shape[:2]
        rows = np.arange(max(0, y - reach), min(height, y + reach + 1))
        columns = np.arange(max(0, x - reach), min(width, x + reach + 1))
        disc = (rows[:, None] - y) ** 2 + (columns - x) ** 2 <= reach**2
        part = self.features[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        return np.asarray((part[disc].mean(axis=0) - self._mean) / self._deviation, np.float64)

    def measure(self, defects: Sequence[Vector], others: Sequence[Vector]) -> Floats:
        """Returns the likeness of each pixel, [H, W], to the samples of defects; `others` are not."""
        matrix = self.covariance.copy()
        for sample in others:
            matrix += NEGATIVE_WEIGHT * np.outer(sample, sample)
        defect = np.mean(defects, axis=0)
        weights = np.linalg.solve(matrix, defect)
        scale = max(float(weights @ defect), 1e-6)
        weights = weights / scale / self._deviation  # so that no normalised copy of all features is needed
        row = np.append(weights, -(weights @ self._mean))
        return np.asarray(cv2.transform(self.features, row[None]), np.float32)
