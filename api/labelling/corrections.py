"""Corrections of a segmentation around clicks that contradict it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from api.labelling.clicks import Click
from api.labelling.pixel_features import Floats

WIDTH = 1.1
"""Standard deviation of a correction, relative to the reach of its click."""
RIDGE = 0.02
"""Regularisation of the heights of the corrections."""
MAX_DISTANCE = 3.0
"""Standard deviations beyond which a correction is 0."""


def correct(values: Floats, clicks: Sequence[Click], reaches: Sequence[float]) -> None:
    """Adds a Gaussian around each click, so that `values` [H, W] are about 1 at defects and −1 at others.

    Args:
        values: Above 0 is a defect; changed in place.
        clicks: The clicks.
        reaches: Of each click: how far around it the segmentation was wrong, px.
    """
    x = np.array([click.x for click in clicks], np.float64)
    y = np.array([click.y for click in clicks], np.float64)
    wanted = np.array([1.0 if click.is_defect else -1.0 for click in clicks])
    sigma = WIDTH * np.asarray(reaches, np.float64)
    square = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    kernel = np.exp(-square / (2 * sigma**2))
    missing = wanted - values[[click.y for click in clicks], [click.x for click in clicks]]
    matrix = kernel.T @ kernel + RIDGE * np.eye(len(clicks))
    heights = np.linalg.solve(matrix, kernel.T @ missing)
    for click, height, deviation in zip(clicks, heights, sigma, strict=True):
        _add_gaussian(values, click, float(height), float(deviation))


def _add_gaussian(values: Floats, click: Click, height: float, sigma: float) -> None:
    radius = int(MAX_DISTANCE * sigma) + 1
    rows, columns = (
        slice(max(0, centre - radius), min(length, centre + radius + 1))
        for centre, length in zip((click.y, click.x), values.shape, strict=True)
    )
    down = _bell(np.arange(rows.start, rows.stop) - click.y, sigma)
    across = _bell(np.arange(columns.start, columns.stop) - click.x, sigma)
    values[rows, columns] += np.float32(height) * np.outer(down, across).astype(np.float32)


def _bell(distance: NDArray[np.int64], sigma: float) -> NDArray[np.float64]:
    return np.asarray(np.exp(-(distance**2) / (2 * sigma**2)))
