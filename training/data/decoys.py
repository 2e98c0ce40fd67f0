"""What strikes the eye on good photographs and is good all the same, put elsewhere.

A network that learns from made-up defects alone would take any patch that something was done to for one, and
each reflection where there was none before. These are done the same to, and stay good.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from training.data.part_finder import find_inspected_part
from training.data.transplants import transplant_defect
from training.data.visibility import appearance

Image = NDArray[np.uint8]
Mask = NDArray[np.uint8]

STRIKING = 0.998
"""Quantile of an appearance above which a pixel strikes the eye."""

LEAST_PX = 4
"""Of a place that does."""

MARGIN_PX = 5
"""How far around a striking place is moved with it."""


def move_striking_place(
    image: Image,
    other: Image,
    random: np.random.Generator,
    area: Mask | None = None,
    other_area: Mask | None = None,
) -> Image:
    """Puts a striking place of one good photograph onto another, turned, scaled, and anywhere on the part.

    Args:
        image: uint8 [h, w, C], good.
        other: uint8 [·, ·, C], good; it may be the same.
        random: Is advanced.
        area: uint8 [h, w], above 0 where the photograph is inspected; None = everywhere.
        other_area: The same of the other one.

    Returns:
        The photograph with the place; itself if nothing on the other one strikes the eye.
    """
    place = find_striking_place(other, random, other_area)
    moved = None if place is None else transplant_defect(image, other, place, random, area)
    return image if moved is None else moved[0]


def find_striking_place(image: Image, random: np.random.Generator, area: Mask | None = None) -> Mask | None:
    """Returns the mask [h, w], 255 there, of a place that differs most from the rest in one appearance.

    Which appearance, darker or brighter, and which of its places is drawn, larger ones more often.
    """
    shown = appearance(image)[int(random.integers(3))].max(axis=2) * random.choice([-1.0, 1.0])
    part = find_inspected_part(image, area)
    inside = np.ones(shown.shape, np.bool_) if part is None else part
    if not inside.any():
        return None
    striking = inside & (shown > np.quantile(shown[inside], STRIKING))
    _, pieces, statistics, _ = cv2.connectedComponentsWithStats(striking.view(np.uint8))
    areas = np.asarray(statistics)[:, cv2.CC_STAT_AREA].astype(np.float64)
    areas[0] = 0.0
    areas[areas < LEAST_PX] = 0.0
    if not areas.any():
        return None
    chosen = np.asarray(pieces) == random.choice(len(areas), p=areas / areas.sum())
    around = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * MARGIN_PX + 1, 2 * MARGIN_PX + 1))
    return np.asarray(cv2.dilate(chosen.view(np.uint8) * np.uint8(255), around), np.uint8)
