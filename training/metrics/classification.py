"""Metrics of the image decision, from labels and scores; undefined ones are None."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score


def average_precision(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Returns the step-wise average precision Σ (Rₙ − Rₙ₋₁)·Pₙ of the image scores [N].

    Labels [N] other than 0 are defective. None unless there are good and defective images.
    """
    return _measure_area(average_precision_score, labels, scores)


def average_precision_trapezoid(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Returns the area under the precision-recall curve by the trapezoidal rule; None as `average_precision`.

    Compare it only with values of the same kind.
    Reference: Božič et al. 2021, Mixed supervision for surface-defect detection, which reports it.
    """

    def area(defective: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
        precision, recall, _ = precision_recall_curve(defective, scores)
        return float(auc(recall, precision))

    return _measure_area(area, labels, scores)


def auroc(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Returns the area under the ROC curve of the image scores [N]; None if all are good or all defective."""
    return _measure_area(roc_auc_score, labels, scores)


def _measure_area(area: Callable[..., float], labels: ArrayLike, scores: ArrayLike) -> float | None:
    defective = np.asarray(labels) != 0
    if defective.all() or not defective.any():
        return None
    return min(float(area(defective, np.asarray(scores))), 1.0)  # rounded steps may sum to more than 1


def count_errors(labels: ArrayLike, scores: ArrayLike, threshold: ArrayLike) -> tuple[int, int]:
    """Counts false positives and false negatives at one threshold for all images, or one for each [N]."""
    defective = np.asarray(labels) != 0
    detected = np.asarray(scores) >= np.asarray(threshold)
    return int(np.count_nonzero(detected & ~defective)), int(np.count_nonzero(~detected & defective))


def false_positives_at_full_recall(labels: ArrayLike, scores: ArrayLike) -> int | None:
    """Counts good images with at least the lowest score of a defective one; None without a defective one."""
    defective = np.asarray(labels) != 0
    if not defective.any():
        return None
    values = np.asarray(scores)
    return int(np.count_nonzero(values[~defective] >= values[defective].min()))
