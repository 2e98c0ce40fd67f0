"""Which class the pixels of a mask have, where the network gives a mask for each class of defects."""

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
Classes = NDArray[np.uint8]

MIN_SCORE_SHARE = 0.5
"""Of the highest score of a connected defect, below which a part of another class is none of its own."""


def max_class_scores(logits: Scores, restore: Callable[[Scores], Scores]) -> tuple[Scores, Classes]:
    """Returns the highest score of each pixel, and the class that has it; one class is held at a time.

    Args:
        logits: float32 [h, w, M], one for each class of defects.
        restore: Makes of the logits [h, w] of one class its scores at the photograph's size [H, W].

    Returns:
        Scores float32 [H, W], and classes uint8 [H, W], from 1 on; of equal ones the first.
    """
    scores = restore(np.ascontiguousarray(logits[..., 0]))
    classes = np.ones(scores.shape, np.uint8)
    for number in range(1, logits.shape[2]):
        found = restore(np.ascontiguousarray(logits[..., number]))
        classes[found > scores] = number + 1
        np.maximum(scores, found, out=scores)
    return scores, classes


def assign_classes(mask: NDArray[np.uint8], scores: Scores, classes: Classes, min_px: float) -> Classes:
    """Gives each pixel of a mask its class: what lies on the rim of a defect has that of the defect.

    A connected defect may be of several classes. But a part of it is one of its own only if it has at least
    `min_px` pixels and half of the highest score of the whole; else it has the class of the whole, which
    is the one with the largest sum of scores.

    Args:
        mask: uint8 [H, W], above 0 = defect.
        scores: float32 [H, W], the mask scores.
        classes: uint8 [H, W], the class with the highest score, from 1 on.
        min_px: Pixels of the photograph that a cell of the network's mask covers.

    Returns:
        uint8 [H, W], 0 outside of the mask.
    """
    settled = np.where(mask > 0, classes, np.uint8(0))
    count, found, boxes, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    numbered, stats = np.asarray(found, np.int32), np.asarray(boxes).tolist()
    for number in range(1, count):
        x, y, width, height, _ = stats[number]
        window = np.s_[y : y + height, x : x + width]
        _settle_one(settled[window], scores[window], numbered[window] == number, min_px)
    return settled


def _settle_one(settled: Classes, scores: Scores, inside: NDArray[np.bool_], min_px: float) -> None:
    """Settles one connected defect, in place."""
    own, weights = settled[inside], scores[inside]
    sums = np.bincount(own, weights)
    if np.count_nonzero(sums) < 2:
        return
    main, least_score = int(sums.argmax()), MIN_SCORE_SHARE * float(weights.max())
    for other in np.flatnonzero(sums).tolist():
        if other == main:
            continue
        part = (inside & (settled == other)).view(np.uint8)
        count, found, boxes, _ = cv2.connectedComponentsWithStats(part, connectivity=8)
        numbered, areas_px = np.asarray(found, np.int32), np.asarray(boxes)[:, cv2.CC_STAT_AREA]
        highest = np.zeros(count, np.float32)
        np.maximum.at(highest, numbered[part > 0], scores[part > 0])
        small = (areas_px < min_px) | (highest < least_score)
        small[0] = False
        settled[small[numbered]] = main
