"""How good a model is: figures of the image decision and of the mask.

A figure that a set of photographs cannot give (the average precision without a defective one) is
None, never NaN, so that it becomes `null` in JSON.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score


@dataclass(frozen=True)
class PixelCounts:
    """Pixels of one mask, or pooled over many, held against the truth."""

    tp: int = 0
    fp: int = 0
    fn: int = 0

    def __add__(self, other: "PixelCounts") -> "PixelCounts":
        return PixelCounts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)

    @property
    def iou(self) -> float | None:
        """Intersection over union; None when neither mask has a pixel."""
        return _ratio(self.tp, self.tp + self.fp + self.fn)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall (Dice); None when neither mask has a pixel."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def precision(self) -> float | None:
        """Share of the predicted pixels that are defect; None when none is predicted."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """Share of the defect pixels that are predicted; None when there is none."""
        return _ratio(self.tp, self.tp + self.fn)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def count_pixels(mask: NDArray[np.uint8], truth: NDArray[np.uint8] | None) -> PixelCounts:
    """Compares a predicted mask [H, W] with its truth [H, W], any non-zero value being defect.

    Args:
        mask: The prediction.
        truth: The full-size mask; None for a photograph without defect.

    Raises:
        ValueError: The two differ in size.
    """
    predicted = mask != 0
    if truth is None:
        return PixelCounts(fp=int(np.count_nonzero(predicted)))
    if truth.shape != mask.shape:
        raise ValueError(
            f"Predicted mask of shape {mask.shape}, truth of shape {truth.shape}; expected equal"
        )
    actual = truth != 0
    hits = int(np.count_nonzero(predicted & actual))
    return PixelCounts(hits, int(np.count_nonzero(predicted)) - hits, int(np.count_nonzero(actual)) - hits)


def average_precision(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Step-wise average precision Σ (Rₙ − Rₙ₋₁)·Pₙ of the image scores [N].

    A label [N] other than 0 is defective. None unless there are good and defective images: without
    good ones the figure would be 1 whatever the model answers.
    """
    defective = np.asarray(labels) != 0
    if not _has_both(defective):
        return None
    return float(average_precision_score(defective, np.asarray(scores)))


def auroc(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Area under the ROC curve of the image scores [N]; None unless there are good and defective images."""
    defective = np.asarray(labels) != 0
    if not _has_both(defective):
        return None
    return float(roc_auc_score(defective, np.asarray(scores)))


def count_errors(labels: ArrayLike, scores: ArrayLike, threshold: float) -> tuple[int, int]:
    """False positives and false negatives when an image is defective from `threshold` upwards."""
    defective = np.asarray(labels) != 0
    detected = np.asarray(scores) >= threshold
    return int(np.count_nonzero(detected & ~defective)), int(np.count_nonzero(~detected & defective))


def false_positives_at_no_miss(labels: ArrayLike, scores: ArrayLike) -> int | None:
    """Good images that score as high as the lowest defective one: the price of FN = 0.

    None without a defective image.
    """
    defective = np.asarray(labels) != 0
    if not defective.any():
        return None
    values = np.asarray(scores)
    return int(np.count_nonzero(values[~defective] >= values[defective].min()))


def confusion_matrix(truth: ArrayLike, predicted: ArrayLike, num_classes: int) -> NDArray[np.int64]:
    """Images [C, C] by true class (row) and predicted class (column), from class indices [N]."""
    matrix = np.zeros((num_classes, num_classes), np.int64)
    np.add.at(matrix, (np.asarray(truth, np.intp), np.asarray(predicted, np.intp)), 1)
    return matrix


def _has_both(defective: NDArray[np.bool_]) -> bool:
    return bool(defective.any() and not defective.all())


@dataclass(frozen=True)
class Metrics:
    """The figures of one evaluation. None stands for a figure the images cannot give.

    Attributes:
        images: Photographs evaluated; `good` and `defective` of them.
        threshold: Image score from which a photograph counts as defective.
        average_precision: Step-wise AP of the image score.
        auroc: Area under the ROC curve of the image score.
        false_positives: Good images at or above the threshold.
        false_negatives: Defective images below the threshold.
        fp_at_no_miss: False positives at the threshold that misses no defective image.
        label_accuracy: Share of the images with the right class.
        confusion: Images by true class (row) and predicted class (column).
        pixels: Pooled over the images whose defect pixels are known, at the mask threshold.
        pixel_images: How many those are.
    """

    images: int
    good: int
    defective: int
    threshold: float
    average_precision: float | None
    auroc: float | None
    false_positives: int
    false_negatives: int
    fp_at_no_miss: int | None
    label_accuracy: float | None
    confusion: tuple[tuple[int, ...], ...]
    pixels: PixelCounts
    pixel_images: int

    @property
    def errors(self) -> int:
        """False positives and false negatives together."""
        return self.false_positives + self.false_negatives

    def to_dict(self) -> dict[str, Any]:
        """All figures, ready for JSON: undefined ones are None."""
        names = [name for name in self.__dataclass_fields__ if name not in ("confusion", "pixels")]
        figures: dict[str, Any] = {name: getattr(self, name) for name in names}
        for name in ("iou", "f1", "precision", "recall"):
            figures[f"pixel_{name}"] = getattr(self.pixels, name)
        return {**figures, "confusion": [list(row) for row in self.confusion]}


def measure(
    truth: Sequence[int],
    predicted: Sequence[int],
    scores: Sequence[float],
    pixels: Sequence[PixelCounts | None],
    *,
    threshold: float,
    num_classes: int,
) -> Metrics:
    """All figures of N photographs, N may be 0.

    Args:
        truth: Class indices [N]; 0 is good.
        predicted: Class indices [N] the model gave.
        scores: Image scores [N], 0 to 1.
        pixels: Mask against truth [N]; None where the defect pixels are unknown.
        threshold: Image score from which a photograph counts as defective.
        num_classes: Classes of the model, `good` included.
    """
    defective = sum(label != 0 for label in truth)
    false_positives, false_negatives = count_errors(truth, scores, threshold)
    confusion = confusion_matrix(truth, predicted, num_classes)
    known = [counts for counts in pixels if counts is not None]
    return Metrics(
        images=len(truth),
        good=len(truth) - defective,
        defective=defective,
        threshold=threshold,
        average_precision=average_precision(truth, scores),
        auroc=auroc(truth, scores),
        false_positives=false_positives,
        false_negatives=false_negatives,
        fp_at_no_miss=false_positives_at_no_miss(truth, scores),
        label_accuracy=_ratio(int(np.trace(confusion)), len(truth)),
        confusion=tuple(tuple(int(count) for count in row) for row in confusion),
        pixels=sum(known, PixelCounts()),
        pixel_images=len(known),
    )
