"""Assigns a class to each pixel, for networks with a mask per defect class."""

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
Classes = NDArray[np.uint8]

MIN_SCORE_SHARE = 0.5
"""A part of a defect keeps its own class only from this share of the defect's highest score."""


def max_class_scores(logits: Scores, restore: Callable[[Scores], Scores]) -> tuple[Scores, Classes]:
    """Returns the highest score of each pixel, and its class; processes one class at a time to save memory.

    `logits` are float32 [h, w, M], one per defect class; `restore` turns those of one class into scores [H,
    W].

    Returns:
        Scores float32 [H, W], and class indices uint8 [H, W] from 1; the first of equal ones.
    """
    scores = restore(np.ascontiguousarray(logits[..., 0]))
    classes = np.ones(scores.shape, np.uint8)
    for number in range(1, logits.shape[2]):
        of_class = restore(np.ascontiguousarray(logits[..., number]))
        classes[of_class > scores] = number + 1
        np.maximum(scores, of_class, out=scores)
    return scores, classes


def assign_classes(mask: NDArray[np.uint8], scores: Scores, classes: Classes, min_px: float) -> Classes:
    """Assigns a class to each pixel of a mask, and removes noise at the borders of defects.

    A connected defect may have several classes. A part keeps its own class if it has at least `min_px` pixels
    and half of the defect's highest score; otherwise it gets the main class, which has the largest sum of
    scores. `mask` is uint8 [H, W], above 0 = defect; `scores` are float32 [H, W], `classes` uint8 [H, W] from
    1. `min_px` are the photograph's pixels per cell of the network's mask.

    Returns:
        uint8 [H, W], 0 outside the mask.
    """
    assigned = np.where(mask > 0, classes, np.uint8(0))
    count, parts, boxes, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    numbered, stats = np.asarray(parts, np.int32), np.asarray(boxes).tolist()
    for number in range(1, count):
        x, y, width, height, _ = stats[number]
        window = np.s_[y : y + height, x : x + width]
        _merge_small_parts(assigned[window], scores[window], numbered[window] == number, min_px)
    return assigned


def _merge_small_parts(assigned: Classes, scores: Scores, inside: NDArray[np.bool_], min_px: float) -> None:
    """Gives the small parts of one connected defect its main class, in place."""
    own, weights = assigned[inside], scores[inside]
    sums = np.bincount(own, weights)
    if np.count_nonzero(sums) < 2:
        return
    main, min_score = int(sums.argmax()), MIN_SCORE_SHARE * float(weights.max())
    for other in np.flatnonzero(sums).tolist():
        if other == main:
            continue
        part = (inside & (assigned == other)).view(np.uint8)
        count, parts, boxes, _ = cv2.connectedComponentsWithStats(part, connectivity=8)
        numbered, areas_px = np.asarray(parts, np.int32), np.asarray(boxes)[:, cv2.CC_STAT_AREA]
        highest = np.zeros(count, np.float32)
        np.maximum.at(highest, numbered[part > 0], scores[part > 0])
        small = (areas_px < min_px) | (highest < min_score)
        small[0] = False
        assigned[small[numbered]] = main
