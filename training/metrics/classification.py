"""Metrics of the image decision, from labels and scores; undefined ones are None."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score


def average_precision(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Returns the step-wise average precision Σ (Rₙ − Rₙ₋₁)·Pₙ of the image scores [N].

    Labels [N] other than 0 are defective. None unless there are good and defective images.
    """
    defective = np.asarray(labels) != 0
    if not _has_both(defective):
        return None
    return _at_most_one(average_precision_score(defective, np.asarray(scores)))


def average_precision_trapezoid(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Returns the area under the precision-recall curve by the trapezoidal rule, as Božič et al. 2021 report
    it.

    It interpolates linearly between thresholds. Compare it only with values of the same kind. None as in
    `average_precision`.
    Reference: Božič et al. 2021, Mixed supervision for surface-defect detection.
    """
    defective = np.asarray(labels) != 0
    if not _has_both(defective):
        return None
    precision, recall, _ = precision_recall_curve(defective, np.asarray(scores))
    return _at_most_one(auc(recall, precision))


def auroc(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Returns the area under the ROC curve of the image scores [N]; None if all are good or all defective."""
    defective = np.asarray(labels) != 0
    if not _has_both(defective):
        return None
    return _at_most_one(roc_auc_score(defective, np.asarray(scores)))


def count_errors(labels: ArrayLike, scores: ArrayLike, threshold: ArrayLike) -> tuple[int, int]:
    """Counts false positives and false negatives at one threshold for all images, or one for each [N]."""
    defective = np.asarray(labels) != 0
    detected = np.asarray(scores) >= np.asarray(threshold)
    return int(np.count_nonzero(detected & ~defective)), int(np.count_nonzero(~detected & defective))


def false_positives_at_full_recall(labels: ArrayLike, scores: ArrayLike) -> int | None:
    """Counts good images with a score of at least the lowest score of a defective image; None if there is no
    defective image.
    """
    defective = np.asarray(labels) != 0
    if not defective.any():
        return None
    values = np.asarray(scores)
    return int(np.count_nonzero(values[~defective] >= values[defective].min()))


def confusion_matrix(truth: ArrayLike, predicted: ArrayLike, num_classes: int) -> NDArray[np.int64]:
    """Counts images [C, C] by true class (row) and predicted class (column), from class indices [N]."""
    matrix = np.zeros((num_classes, num_classes), np.int64)
    np.add.at(matrix, (np.asarray(truth, np.intp), np.asarray(predicted, np.intp)), 1)
    return matrix


def _at_most_one(area: float) -> float:
    """Removes rounding errors: the steps of a perfect curve may sum to more than 1."""
    return min(float(area), 1.0)


def _has_both(defective: NDArray[np.bool_]) -> bool:
    return bool(defective.any() and not defective.all())
