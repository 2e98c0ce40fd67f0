"""Histograms of mask scores: metrics for all thresholds in constant memory."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from training.metrics.regions import find_true_regions

EDGES = 256
"""Mask thresholds are multiples of 1/256."""

ROUNDING = 1e-5
"""Tolerance for scores beyond 0 or 1, from rounding."""

PARTS_BITS = 9
"""Each octave of the distance to the nearer end, 0 or 1, has 2⁹ bins: odds are resolved to 0.2 %."""

_SHIFT = 23 - PARTS_BITS  # dropped mantissa bits of a float32
_FIRST = (127 - 25 << PARTS_BITS) - 1  # bin 1 begins at 2⁻²⁵; lower scores are in bin 0
_HALF = (25 - 1 << PARTS_BITS) + 1  # bins of scores below 0.5

BINS = 2 * _HALF
"""Bins from 0 to 1: 24,578."""

FPR_LIMIT = 0.3
"""AUPRO is the area up to this false positive rate of pixels."""


def bin_scores(scores: NDArray[np.float32]) -> NDArray[np.intp]:
    """Returns the bin of each score, 0 to `BINS` − 1, in the order of the scores.

    Bins are logarithmic in the distance to 0 and to 1, down to 2⁻²⁵, since most scores are near 0 or 1.
    Each multiple of 1/256 is a bin edge, so that such a threshold splits exactly as `>=` does.
    """
    near = np.asarray(scores, np.float32).clip(0, 1).ravel()
    upper = near >= 0.5
    np.subtract(1, near, out=near, where=upper)  # exact in float32
    bits = near.view(np.int32)  # bits of positive floats are ordered like the floats
    bits -= upper  # bins of the upper half include their upper edge
    bits >>= _SHIFT
    bits -= _FIRST
    places = np.maximum(bits, 0, out=bits)
    np.subtract(BINS - 1, places, out=places, where=upper)
    return places.astype(np.intp).reshape(np.shape(scores))


class PixelHistogram:
    """Histograms of the mask scores of defect pixels, background pixels and true regions (0.6 MB)."""

    def __init__(self) -> None:
        self._counts = np.zeros((2, BINS), np.int64)  # background, defect
        self._coverage = np.zeros(BINS, np.float64)  # each true region has a total weight of 1
        self._regions = 0

    def add(
        self,
        mask_scores: NDArray[np.float32],
        truth: NDArray[np.uint8] | None,
        ignored: NDArray[np.uint8] | None = None,
    ) -> None:
        """Adds the pixels of one image.

        Args:
            mask_scores: [H, W], 0 to 1.
            truth: True mask [H, W]; None without a defect.
            ignored: [H, W], above 0 for pixels that do not count and are 0 in `truth`; None = nowhere.

        Raises:
            ValueError: If a score is not a number between 0 and 1.
        """
        if mask_scores.size and not (mask_scores.min() >= -ROUNDING and mask_scores.max() <= 1 + ROUNDING):
            raise ValueError("A mask score is not a number between 0 and 1; the network may have diverged")
        bins = bin_scores(mask_scores).ravel()
        counted = bins if ignored is None else bins[ignored.ravel() == 0]
        self._counts[0] += np.bincount(counted, minlength=BINS)
        if truth is not None:
            self._add_regions(bins, truth)

    def _add_regions(self, bins: NDArray[np.intp], truth: NDArray[np.uint8]) -> None:
        regions = find_true_regions(truth)
        inside = bins[regions.pixels]
        defect = np.bincount(inside, minlength=BINS)
        self._counts += np.stack([-defect, defect])
        weights = 1 / regions.areas_px[regions.numbers]
        self._coverage += np.bincount(inside, weights, minlength=BINS)
        self._regions += len(regions.areas_px)

    def __add__(self, other: "PixelHistogram") -> "PixelHistogram":
        both = PixelHistogram()
        both._counts = self._counts + other._counts
        both._coverage = self._coverage + other._coverage
        both._regions = self._regions + other._regions
        return both

    def f1_at_edges(self) -> NDArray[np.float64] | None:
        """Returns the pooled pixel F1 at thresholds from 1/256 to 255/256 [255]; None without a defect."""
        first = bin_scores((np.arange(1, EDGES) / EDGES).astype(np.float32))
        background, hits = (np.cumsum(counts[::-1])[::-1][first] for counts in self._counts)
        defect = self._counts[1].sum()
        return 2 * hits / (hits + background + defect) if defect else None

    def average_precision(self) -> float | None:
        """Returns the step-wise average precision of all pixels; None without defect or background pixels.

        Scores in one bin count as equal.
        """
        background, defect = (np.cumsum(counts[::-1]) for counts in self._counts)
        if not (background[-1] and defect[-1]):
            return None
        recall = np.diff(defect, prepend=0) / defect[-1]
        return float(np.sum(recall * defect / np.maximum(defect + background, 1)))

    def aupro(self) -> float | None:
        """Returns the area under the per-region overlap curve, 0 to 1; None without regions or background.

        The curve is the mean covered share of all true regions over the false positive rate of background
        pixels; its area up to a rate of 0.3 is divided by 0.3.
        Reference: Bergmann et al. 2021, The MVTec Anomaly Detection Dataset, section 4.2.
        """
        background = self._counts[0][::-1].cumsum()
        if not (self._regions and background[-1]):
            return None
        rate = np.concatenate([[0], background / background[-1]])
        overlap = np.concatenate([[0], self._coverage[::-1].cumsum() / self._regions])
        last = int(np.searchsorted(rate, FPR_LIMIT))  # at or beyond the limit
        at_limit = np.interp(FPR_LIMIT, rate[last - 1 : last + 1], overlap[last - 1 : last + 1])
        area = np.trapezoid(np.append(overlap[:last], at_limit), np.append(rate[:last], FPR_LIMIT))
        return float(area / FPR_LIMIT)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays that `from_arrays` reads."""
        counts = {"background": self._counts[0], "defect": self._counts[1]}
        return {**counts, "coverage": self._coverage, "regions": np.array(self._regions)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Returns the histogram of the arrays of `to_arrays`.

        Raises:
            KeyError: If an array is missing.
            ValueError: If an array has another shape.
        """
        histogram = cls()
        for name in ("background", "defect", "coverage"):
            if arrays[name].shape != (BINS,):
                raise ValueError(f"'{name}' has the shape {arrays[name].shape}; expected ({BINS},)")
        histogram._counts[:] = arrays["background"], arrays["defect"]
        histogram._coverage[:] = arrays["coverage"]
        histogram._regions = int(arrays["regions"])
        return histogram
