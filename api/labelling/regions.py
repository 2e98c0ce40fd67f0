"""Distances and connected regions of a mask around clicks."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from api.labelling.clicks import Click
from api.labelling.pixel_features import Floats

Mask = NDArray[np.uint8]

MIN_REACH = 1.5
FIRST_REACH = 5.0
"""Reach of a click while the mask is empty, px."""
MAX_REACH = 1.0
"""Greatest reach of a click on a defect, relative to the half width of the mask: it may be another defect."""
MAX_DISC_RADIUS = 2
"""Greatest radius of the disc around a click that always has its class, px."""


def measure_reach(mask: Mask, clicks: Sequence[Click]) -> float:
    """Returns how far around the last click the mask is probably wrong: up to its edge, px.

    People click in the middle of what is wrong, and the edge of the mask is the nearest end of that. A click
    of the other kind is an end, too.
    """
    click, distance = clicks[-1], FIRST_REACH
    if mask.any():
        same = mask if not click.is_defect else 1 - mask
        distance = float(_distance(same)[click.y, click.x])
        if click.is_defect:
            distance = min(distance, max(FIRST_REACH, MAX_REACH * measure_half_width(mask)))
    for other in clicks[:-1]:
        if other.is_defect != click.is_defect:
            distance = min(distance, float(np.hypot(other.x - click.x, other.y - click.y)))
    return max(MIN_REACH, distance)


def measure_half_width(mask: Mask) -> float:
    """Returns the distance of the innermost pixel of a mask from its edge or that of the image, px."""
    return max(MIN_REACH, float(_distance(np.pad(mask, 1)).max()))


def measure_distance_outside(mask: Mask, clicks: Sequence[Click], reaches: Sequence[float]) -> Floats:
    """Returns the distance of each pixel from the mask and from the discs of clicked defects, px, [H, W]."""
    outside = 1 - mask
    for click, reach in zip(clicks, reaches, strict=True):
        if click.is_defect:
            cv2.circle(outside, (click.x, click.y), int(reach), 0, -1)
    return _distance(outside)


def select_clicked(values: Floats, clicks: Sequence[Click], reaches: Sequence[float]) -> Mask:
    """Returns where `values` are above 0 and connected with a clicked defect, 0 or 1, [H, W].

    A small disc around each click has its class. Without clicks on good surface, holes are closed.
    """
    chosen = (values > 0).astype(np.uint8)
    for click, reach in zip(clicks, reaches, strict=True):
        cv2.circle(chosen, (click.x, click.y), int(min(MAX_DISC_RADIUS, reach / 2)), int(click.is_defect), -1)
    for click in clicks:  # the disc of a near click of the other class may have covered it
        chosen[click.y, click.x] = click.is_defect
    count, labels = cv2.connectedComponents(chosen, connectivity=8)
    kept = np.zeros(count, np.uint8)
    kept[[labels[click.y, click.x] for click in clicks if click.is_defect]] = 1
    kept[0] = 0
    chosen = kept[labels]
    return _without_holes(chosen) if all(click.is_defect for click in clicks) else chosen


def _without_holes(mask: Mask) -> Mask:
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = np.zeros_like(mask)
    cv2.drawContours(filled, outlines, -1, 1, cv2.FILLED)
    return filled


def _distance(mask: Mask) -> Floats:
    """Distance to the nearest pixel that is 0, px; at most the diagonal of the mask if none is."""
    distance = cv2.distanceTransform(np.ascontiguousarray(mask), cv2.DIST_L2, cv2.DIST_MASK_5)
    return np.asarray(np.minimum(distance, np.float32(np.hypot(*mask.shape))), np.float32)
