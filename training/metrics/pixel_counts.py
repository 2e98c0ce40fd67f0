"""Pixel counts of predicted masks against true masks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PixelCounts:
    """True positive, false positive and false negative pixels of one mask, or pooled over many.

    Without a true defect pixel the figures are undefined: all marked pixels would be false.
    """

    tp: int = 0
    fp: int = 0
    fn: int = 0

    def __add__(self, other: "PixelCounts") -> "PixelCounts":
        return PixelCounts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)

    @property
    def iou(self) -> float | None:
        """Intersection over union; None without a defect pixel."""
        return ratio(self.tp, self.tp + self.fp + self.fn) if self.tp + self.fn else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall (Dice); None without a defect pixel."""
        return ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn) if self.tp + self.fn else None

    @property
    def precision(self) -> float | None:
        """Share of the predicted pixels that are defect; None without a predicted or a defect pixel."""
        return ratio(self.tp, self.tp + self.fp) if self.tp + self.fn else None

    @property
    def recall(self) -> float | None:
        """Share of the defect pixels that are predicted; None if there is none."""
        return ratio(self.tp, self.tp + self.fn)


def ratio(part: int, whole: int) -> float | None:
    """Returns `part / whole`; None if `whole` is 0."""
    return part / whole if whole else None


def count_pixels(mask: NDArray[np.uint8], truth: NDArray[np.uint8] | None) -> PixelCounts:
    """Counts the pixels of a predicted mask [H, W] against the true mask [H, W], None without a defect.
    Raises a `ValueError` if the sizes differ.
    """
    predicted = mask != 0
    if truth is None:
        return PixelCounts(fp=int(np.count_nonzero(predicted)))
    if truth.shape != mask.shape:
        raise ValueError(f"Predicted mask {mask.shape} and truth {truth.shape}; expected equal shapes")
    actual = truth != 0
    hits = int(np.count_nonzero(predicted & actual))
    return PixelCounts(hits, int(np.count_nonzero(predicted)) - hits, int(np.count_nonzero(actual)) - hits)
