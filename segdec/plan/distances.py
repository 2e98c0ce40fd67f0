"""Distances between parts of a mask."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.plan.mask_parts import MaskPart


def smallest_distance(parts: Sequence[MaskPart]) -> float | None:
    """Returns the smallest distance of two parts, from border to border, px; 0 if they touch or one is given
    twice; None for less than two parts.

    Each pixel has a nearest pixel of a part. Where that of its neighbour belongs to another part, both are
    candidates for the closest pair.
    """
    if len(parts) < 2:
        return None
    owners = _draw_owners(parts)
    if owners is None:
        return 0.0
    _, nearest = cv2.distanceTransformWithLabels(
        (owners == 0).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    places = np.argwhere(owners)
    pixel_of = np.zeros(int(nearest.max()) + 1, np.int64)  # of a label, in `places`
    pixel_of[nearest[tuple(places.T)]] = np.arange(len(places))
    pixels, cells = pixel_of[nearest], owners[tuple(places.T)]
    shortest = np.inf
    for one, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        first, second = pixels[one].ravel(), pixels[other].ravel()
        between = cells[first] != cells[second]
        steps = places[first[between]] - places[second[between]]
        shortest = min(shortest, float(np.linalg.norm(steps, axis=1).min(initial=np.inf)))
    return max(shortest - 1.0, 0.0)  # from border to border


def _draw_owners(parts: Sequence[MaskPart]) -> NDArray[np.int32] | None:
    """Returns the number of the part that each pixel belongs to, from 1; None if parts share a pixel."""
    top, left = (min(part.window[axis].start for part in parts) for axis in (0, 1))
    bottom, right = (max(part.window[axis].stop for part in parts) for axis in (0, 1))
    owners = np.zeros((bottom - top, right - left), np.int32)
    for number, part in enumerate(parts, start=1):
        rows, columns = part.window
        inside = owners[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
        if inside[part.pixels].any():
            return None
        inside[part.pixels] = number
    return owners
