"""Choosing the limits of a model on validation photographs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from training.evaluation.pixel_histogram import EDGES, ROUNDING, PixelHistogram

DEFAULT = 0.5
"""The limit if validation cannot tell."""

SATURATION = 2.0**-24
"""Scores nearer to 0 or 1 count as this near: float32 logits say no more, whatever the last digits."""


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold, and what the user must know about it (None if there is nothing)."""

    value: float
    warning: str | None = None


def choose_score_threshold(labels: ArrayLike, scores: ArrayLike) -> ThresholdChoice:
    """Chooses the image score from which a photograph is called defective, from validation [N].

    It makes the fewest errors (false positives and false negatives); of equals it is the one that
    misses fewer defects. It lies as far as it can from the neighbouring scores: in the middle of
    their gap in logit space, because scores crowd near 0 and 1.

    Args:
        labels: Class indices; other than 0 is defective.
        scores: Image scores, 0 to 1.

    Returns:
        0.5 with a warning if there is no good or no defective image; a warning also if every
        image is best called the same.

    Raises:
        ValueError: If lengths differ, or a score is not a number between 0 and 1.
    """
    defective, values = _checked(labels, scores)
    good_count, defective_count = int((~defective).sum()), int(defective.sum())
    if not good_count or not defective_count:
        return ThresholdChoice(DEFAULT, _explain_default(good_count, defective_count))
    cuts = np.unique(values)
    misses = np.searchsorted(np.sort(values[defective]), cuts)
    alarms = good_count - np.searchsorted(np.sort(values[~defective]), cuts)
    if cuts[-1] < 1.0:  # no threshold lies above a score of 1
        misses, alarms = np.append(misses, defective_count), np.append(alarms, 0)
    return _place(cuts, int(np.lexsort((misses, misses + alarms))[0]))


def _checked(labels: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    defective, values = np.asarray(labels) != 0, np.asarray(scores, np.float64)
    if defective.shape != values.shape or values.ndim != 1:
        raise ValueError(
            f"Labels of shape {defective.shape} and scores {values.shape}; expected two equal [N]"
        )
    if not np.all((values >= -ROUNDING) & (values <= 1 + ROUNDING)):
        raise ValueError("A score is not a number between 0 and 1; the network may have diverged")
    return defective, np.clip(values, 0.0, 1.0)


def _explain_default(good: int, defective: int) -> str:
    return (
        f"The validation split has {good} good and {defective} defective images, too few to choose a score "
        f"threshold: {DEFAULT} is used. Put images of both kinds into the validation split."
    )


def _place(cuts: NDArray[np.float64], best: int) -> ThresholdChoice:
    """The threshold that calls `cuts[best]` and what is above it defective."""
    if best == 0:
        value = min(_sigmoid(_logit(cuts[0]) - 1), cuts[0])
        return ThresholdChoice(float(value), _explain_one_sided("defective"))
    below = cuts[best - 1]
    if best == len(cuts):
        value = max(_sigmoid(_logit(below) + 1), np.nextafter(below, 1.0))
        return ThresholdChoice(float(value), _explain_one_sided("good"))
    middle = _sigmoid((_logit(below) + _logit(cuts[best])) / 2)
    return ThresholdChoice(float(middle if below < middle <= cuts[best] else cuts[best]))


def _explain_one_sided(label: str) -> str:
    return (
        f"The validation scores do not tell good from defective: the fewest errors come from calling every "
        f"image {label}. Train longer or look at the labels."
    )


def _logit(score: NDArray[np.float64]) -> NDArray[np.float64]:
    clipped = np.clip(score, SATURATION, 1 - SATURATION)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def _sigmoid(logit: NDArray[np.float64]) -> float:
    return float(1 / (1 + np.exp(-logit)))


def choose_mask_threshold(histogram: PixelHistogram) -> ThresholdChoice:
    """Chooses the mask score from which a pixel belongs to a defect: the best pooled pixel F1 on validation.

    Of equally good thresholds it is the middle one; it is a multiple of 1/256, above 0 and below 1.

    Returns:
        0.5 with a warning if validation has no defect pixel.
    """
    if not histogram.has_defect():
        warning = (
            f"No validation mask holds a defect, so the mask threshold {DEFAULT} is used. "
            "Put defective images with masks into the validation split."
        )
        return ThresholdChoice(DEFAULT, warning)
    edges = np.arange(1, EDGES) / EDGES
    f1 = np.array([histogram.f1_at(float(edge)) for edge in edges], np.float64)
    best = np.flatnonzero(f1 == f1.max())
    return ThresholdChoice(float(edges[best[len(best) // 2]]))
