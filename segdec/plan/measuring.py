"""Measures connected parts of a mask: length, width and area.

The outline of a part runs through the middle of the sides of its border pixels: through their corners, discs
would be too large, through their centres too small.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.plan.center_line import center_line_length

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
            of the longest path along its centre line, px.
        width: Smallest Feret diameter; of a bent part, diameter of the largest circle inside, px.
        area: Number of pixels.
    """

    length: float
    width: float
    area: float


def measure_part(part: Part) -> Sizes:
    """Measures a connected part."""
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
    """Returns the middle of each side between a pixel of the part and one outside.

    x and y are px from the upper left corner of the window.
    """
    padded = np.pad(part, 1)
    rows, columns = np.nonzero(padded[1:-1, 1:] != padded[1:-1, :-1])
    upright = np.stack([columns, rows + 0.5], axis=1)
    rows, columns = np.nonzero(padded[1:, 1:-1] != padded[:-1, 1:-1])
    level = np.stack([columns + 0.5, rows], axis=1)
    return np.concatenate([upright, level]).astype(np.float32)


def feret_diameters(hull: Points) -> tuple[float, float]:
    """Returns the largest and the smallest distance of parallel tangents of a convex polygon, px."""
    between = hull[:, None] - hull[None]
    largest = float(np.sqrt(np.square(between).sum(axis=2).max()))
    sides = np.roll(hull, -1, axis=0) - hull
    normals = np.stack([-sides[:, 1], sides[:, 0]], axis=1) / np.linalg.norm(sides, axis=1, keepdims=True)
    heights = normals @ hull.T  # of each point above each side's direction
    return largest, float(np.ptp(heights, axis=1).min())


def inscribed_radius(part: Part) -> float:
    """Returns the radius of the largest circle inside, px."""
    return float(distances_to_border(part).max())


def distances_to_border(part: Part) -> NDArray[np.float32]:
    """Returns the distance of each point to the border, px, on a grid [2h + 1, 2w + 1] of half pixels."""
    doubled = cv2.resize(part.view(np.uint8), None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)
    distances = cv2.distanceTransform(np.pad(doubled, 1), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(distances, np.float32) / np.float32(2)
