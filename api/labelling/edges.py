"""Moves the edge of a segmentation to where its two sides differ most."""

import cv2
import numpy as np
from numpy.typing import NDArray

from api.labelling.pixel_features import Floats

MIN_BAND, MAX_BAND, BAND = 3.0, 30.0, 0.5
"""Width of the ring outside that is compared: limits, px, and relative to the half width inside."""
MIN_PIXELS = 20
"""Smallest part that is compared."""
MAX_SAMPLES = 3000
"""Pixels of each part that are compared."""
NOISE = 1.0
"""Variance that is added to each channel of the colour, in units of CIELAB squared."""
WEIGHT = 0.7
"""Weight of the comparison, relative to the evidence before."""
MAX_LOG_ODDS = 4.0
"""Logarithm of the odds that count as 1."""


def refine_edge(values: Floats, chosen: NDArray[np.uint8], colours: Floats) -> None:
    """Changes the evidence in a segmentation and in a ring around it by a discriminant of their colours.

    As in GrabCut, what was chosen defines the models of colour that decide again; each is one Gaussian, and
    both have one covariance.

    Args:
        values: Evidence [H, W], −1…1; changed in place.
        chosen: 1 in the segmentation, else 0.
        colours: [H, W, C].
    """
    left, top, width, height = cv2.boundingRect(chosen)
    half_width = float(cv2.distanceTransform(np.pad(chosen, 1), cv2.DIST_L2, cv2.DIST_MASK_5).max())
    band = float(np.clip(BAND * half_width, MIN_BAND, MAX_BAND))
    margin = int(band) + 1
    rows = slice(max(0, top - margin), top + height + margin)
    columns = slice(max(0, left - margin), left + width + margin)
    inside = chosen[rows, columns] > 0
    distance = cv2.distanceTransform((~inside).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    ring = ~inside & (distance <= band)
    if min(np.count_nonzero(inside), np.count_nonzero(ring)) < MIN_PIXELS:
        return
    near = inside | ring
    part = values[rows, columns]
    odds = _measure_odds(colours[rows, columns], inside, ring)[near]
    part[near] = (1 - WEIGHT) * part[near] + WEIGHT * np.clip(odds / MAX_LOG_ODDS, -1, 1)


def _measure_odds(colours: Floats, inside: NDArray[np.bool_], ring: NDArray[np.bool_]) -> Floats:
    """Logarithm of the odds that a pixel is one of `inside` rather than of `ring`, [h, w]."""
    parts = [colours[place].astype(np.float64) for place in (inside, ring)]
    parts = [part[:: max(1, len(part) // MAX_SAMPLES)] for part in parts]
    first, second = (part.mean(axis=0) for part in parts)
    covariances = [np.atleast_2d(np.cov(part.T)) for part in parts]
    covariance = (covariances[0] + covariances[1]) / 2 + NOISE * np.eye(colours.shape[2])
    weights = np.linalg.solve(covariance, first - second)
    offset = float(weights @ (first + second)) / 2
    return np.asarray(cv2.transform(colours, np.append(weights, -offset)[None]), np.float32)
