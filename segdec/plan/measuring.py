"""Measures connected parts of a mask: length, width and area.

The outline of a part runs through the middle of the sides of its border pixels: through their corners, discs
would be too large, through their centres too small.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.plan.center_line import center_line_length, half_pixel_distances
from segdec.plan.reduction import reduce_mask, reduction_factor

Part = NDArray[np.bool_]
"""A connected part [h, w] of a mask, in the smallest window that contains it."""

Points = NDArray[np.floating]
"""x and y [N, 2], px."""

MIN_SOLIDITY = 0.9
"""Share of the convex hull from which a part is compact: its hull has its length and width."""

BENT_FACTOR = 1.03
"""A part is bent if its centre line is so many times as long as its largest Feret diameter."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of a part.

    Attributes:
        length: Largest Feret diameter, which is the distance of parallel tangents; of a bent part, the length
            of the longest path along its centre line, and of one with a hole, of its whole centre line, px.
        width: Smallest Feret diameter; of a bent part, diameter of the largest circle inside, px.
        area: Number of pixels.
    """

    length: float
    width: float
    area: float


def measure_part(part: Part) -> Sizes:
    """Measures a connected part in its smallest window."""
    hull = convex_outline(part)
    length, width = feret_diameters(hull)
    area = float(np.count_nonzero(part))
    if area < MIN_SOLIDITY * cv2.contourArea(hull):
        along = center_line_length(part)
        length = along if along > BENT_FACTOR * length else length
        width = 2.0 * inscribed_radius(part)
    return Sizes(length, width, area)


def convex_outline(part: Part) -> Points:
    """Returns the corners of the convex hull of a part, as `outline_points`."""
    return np.asarray(cv2.convexHull(outline_points(part)), np.float32)[:, 0]


def outline_points(part: Part) -> Points:
    """Returns the outer sides of the first and the last pixel of each row and column, at their middle.

    x and y are px from the upper left corner of the window.
    """
    rows = np.flatnonzero(part.any(axis=1))
    columns = np.flatnonzero(part.any(axis=0))
    lefts, rights = part[rows].argmax(axis=1), part.shape[1] - part[rows, ::-1].argmax(axis=1)
    tops, bottoms = part[:, columns].argmax(axis=0), part.shape[0] - part[::-1, columns].argmax(axis=0)
    x = np.concatenate([lefts, rights, columns + 0.5, columns + 0.5])
    y = np.concatenate([rows + 0.5, rows + 0.5, tops, bottoms])
    return np.stack([x, y], axis=1).astype(np.float32)


def feret_diameters(hull: Points) -> tuple[float, float]:
    """Returns the largest and the smallest distance of parallel tangents of a convex polygon, px."""
    between = hull[:, None] - hull[None]
    largest = float(np.sqrt(np.square(between).sum(axis=2).max()))
    sides = np.roll(hull, -1, axis=0) - hull
    normals = np.stack([-sides[:, 1], sides[:, 0]], axis=1) / np.linalg.norm(sides, axis=1, keepdims=True)
    heights = normals @ hull.T  # of each point above each side's direction
    return largest, float(np.ptp(heights, axis=1).min())


def inscribed_radius(part: Part) -> float:
    """Returns the radius of the largest circle inside, px; of large parts less exactly."""
    factor = reduction_factor(part)
    if factor > 1:
        return factor * inscribed_radius(reduce_mask(part, factor))
    return float(half_pixel_distances(part).max()) / 2
