"""Distances between parts of a mask."""

from collections.abc import Sequence

import cv2
import numpy as np

from segdec.plan.mask_parts import MaskPart


def smallest_distance(parts: Sequence[MaskPart]) -> float | None:
    """Returns the smallest distance of two parts, from border to border, px; 0 if they touch or one is given
    twice; None for less than two parts.

    Each pixel knows its nearest part. The shortest line between two parts crosses from the pixels of one to
    those of the other, where it is as long as both distances together.
    """
    if len(parts) < 2:
        return None
    top, left = (min(part.window[axis].start for part in parts) for axis in (0, 1))
    bottom, right = (max(part.window[axis].stop for part in parts) for axis in (0, 1))
    owners = np.zeros((bottom - top, right - left), np.int32)
    for number, part in enumerate(parts, start=1):
        rows, columns = part.window
        inside = owners[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
        if inside[part.pixels].any():
            return 0.0
        inside[part.pixels] = number
    outside = (owners == 0).view(np.uint8)
    distances, nearest = cv2.distanceTransformWithLabels(
        outside, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    owner_of = np.zeros(int(nearest.max()) + 1, np.int32)
    owner_of[nearest[owners > 0]] = owners[owners > 0]
    cells = owner_of[nearest]
    lengths = [np.inf]
    for one, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        both = np.asarray(distances[one] + distances[other])
        lengths.append(float(both.min(where=cells[one] != cells[other], initial=np.inf)))
    return min(lengths)
