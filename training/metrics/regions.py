"""True defect regions: how much of each the predicted mask covers, by size and class."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from training.metrics.pixel_counts import ratio

SIZE_EDGES_PX = (64, 256, 1024)
"""Edges of the size bins, px: 8 × 8, 16 × 16 and 32 × 32."""

FOUND_OVERLAP = 0.1
"""Share of its pixels that must be covered for a region to count as found.

One pixel would accept an adjacent false alarm; half of the pixels would fail coarse masks, such as those at
1/8 of the resolution.
"""


@dataclass(frozen=True)
class Overlap:
    """One true region (8-connected).

    Attributes:
        covered_px: Pixels of it that the predicted mask covers.
        true_class: Index of its class; 0 if the model has one mask for all classes.
        found_class: Index of the class of most covered pixels; 0 if none is covered, or without classes.
        outside_px: Pixels of its photograph outside all true regions; the mask covers `outside_marked_px`.
    """

    area_px: int
    covered_px: int
    true_class: int = 0
    found_class: int = 0
    outside_px: int = 0
    outside_marked_px: int = 0

    @property
    def share(self) -> float:
        """Covered share of the region, 0 to 1."""
        return self.covered_px / self.area_px

    @property
    def found(self) -> bool:
        """Whether at least `FOUND_OVERLAP` is covered."""
        return self.share >= FOUND_OVERLAP

    @property
    def outside_share(self) -> float:
        """Covered share of the photograph outside all true regions, 0 to 1."""
        return self.outside_marked_px / self.outside_px if self.outside_px else 0.0


@dataclass(frozen=True)
class RegionSize:
    """The true regions of one size bin; `below_px` is None for the last one.

    `mean_overlap` is the mean covered share of a region, `mean_outside` that of its photograph outside all
    true regions: the overlap to expect by chance.
    """

    from_px: int
    below_px: int | None
    regions: int
    found: int
    mean_overlap: float | None
    mean_outside: float | None

    @property
    def found_share(self) -> float | None:
        """Share of the regions that are found; None without one."""
        return ratio(self.found, self.regions)

    def to_dict(self) -> dict[str, Any]:
        """Returns all metrics, ready for JSON."""
        return {**asdict(self), "found_share": self.found_share}


@dataclass(frozen=True)
class TrueRegions:
    """The regions of one true mask: flat indices [P] of its defect pixels, their `numbers` [P], areas [R]."""

    pixels: NDArray[np.intp]
    numbers: NDArray[np.intp]
    areas_px: NDArray[np.int64]


def find_true_regions(truth: NDArray[np.uint8]) -> TrueRegions:
    """Splits the defect pixels (not 0) of a mask [H, W] into 8-connected regions."""
    defect = (truth != 0).astype(np.uint8)
    pixels = np.flatnonzero(defect)
    x, y, width, height = cv2.boundingRect(defect)  # labelling a small window is faster
    window = np.ascontiguousarray(defect[y : y + height, x : x + width])
    if not pixels.size:
        return TrueRegions(pixels, np.empty(0, np.intp), np.empty(0, np.int64))
    _, labels = cv2.connectedComponents(window, connectivity=8)
    numbers = np.asarray(labels, np.intp)[window != 0] - 1  # in the order of `pixels`
    return TrueRegions(pixels, numbers, np.bincount(numbers))


def measure_overlaps(mask: NDArray[np.uint8], truth: NDArray[np.uint8] | None) -> tuple[Overlap, ...]:
    """Measures how much of each true region a predicted mask [H, W] covers; no truth means no defect."""
    if truth is None:
        return ()
    regions = find_true_regions(truth)
    hit = mask.ravel()[regions.pixels] != 0
    covered = np.bincount(regions.numbers[hit], minlength=len(regions.areas_px))
    outside = _count_outside(mask, truth)
    return tuple(
        Overlap(int(area), int(pixels), 0, 0, *outside)
        for area, pixels in zip(regions.areas_px, covered, strict=True)
    )


def _count_outside(mask: NDArray[np.uint8], truth: NDArray[np.uint8]) -> tuple[int, int]:
    """Counts the pixels [H, W] without a true defect, all and those that the mask covers."""
    outside = truth == 0
    return int(np.count_nonzero(outside)), int(np.count_nonzero(outside & (mask != 0)))


def measure_class_overlaps(
    class_mask: NDArray[np.uint8], true_classes: NDArray[np.uint8] | None
) -> tuple[Overlap, ...]:
    """Measures how much of each true region is covered, and by which class.

    Both masks hold the class of each pixel [H, W], 0 for no defect; the true one is None without a defect.
    """
    if true_classes is None:
        return ()
    overlaps, outside = [], _count_outside(class_mask, true_classes)
    for number in np.unique(true_classes[true_classes > 0]).tolist():
        regions = find_true_regions((true_classes == number).view(np.uint8))
        predicted = class_mask.ravel()[regions.pixels]
        counts = np.zeros((len(regions.areas_px), 256), np.int64)
        np.add.at(counts, (regions.numbers, predicted), 1)
        for area_px, (missed_px, *by_class) in zip(regions.areas_px.tolist(), counts.tolist(), strict=True):
            covered_px = area_px - missed_px
            found_class = 1 + int(np.argmax(by_class)) if covered_px else 0
            overlaps.append(Overlap(area_px, covered_px, number, found_class, *outside))
    return tuple(overlaps)


def false_region_classes(class_mask: NDArray[np.uint8], truth: NDArray[np.uint8] | None) -> tuple[int, ...]:
    """Returns the class of each predicted region [H, W] without a true defect pixel."""
    false_classes = []
    for number in np.unique(class_mask[class_mask > 0]).tolist():
        regions = find_true_regions((class_mask == number).view(np.uint8))
        hit = np.zeros(len(regions.areas_px), np.bool_)
        if truth is not None:
            hit[regions.numbers[truth.ravel()[regions.pixels] != 0]] = True
        false_classes += [number] * int(np.count_nonzero(~hit))
    return tuple(false_classes)


@dataclass(frozen=True)
class RegionClasses:
    """Confusion of region classes: true regions by true class (row) and predicted class (column).

    The good class is omitted. The last column holds regions that were not found, the last row predicted
    regions without a defect.
    """

    confusion: tuple[tuple[int, ...], ...]

    @property
    def found(self) -> int:
        """Number of found true regions."""
        return sum(sum(row[:-1]) for row in self.confusion[:-1])

    @property
    def right(self) -> int:
        """Number of found regions with the correct class."""
        return sum(row[place] for place, row in enumerate(self.confusion[:-1]))

    @property
    def accuracy(self) -> float | None:
        """Share of the found regions with the correct class; None without one."""
        return ratio(self.right, self.found)


def count_region_classes(
    overlaps: Iterable[Overlap], false_regions: Iterable[int], classes: int
) -> RegionClasses | None:
    """Counts regions by class; `classes` counts the good class too. None if no region has a class."""
    counts = np.zeros((classes, classes), np.int64)
    for overlap in overlaps:
        if overlap.true_class:
            column = overlap.found_class - 1 if overlap.found and overlap.found_class else classes - 1
            counts[overlap.true_class - 1, column] += 1
    for number in false_regions:
        counts[classes - 1, number - 1] += 1
    return RegionClasses(tuple(map(tuple, counts.tolist()))) if counts.any() else None


def measure_sizes(overlaps: Iterable[Overlap]) -> tuple[RegionSize, ...]:
    """Counts found regions in bins of their area, the smallest first."""
    listed, sizes = list(overlaps), []
    for from_px, below_px in pairwise((1, *SIZE_EDGES_PX, math.inf)):
        inside = [overlap for overlap in listed if from_px <= overlap.area_px < below_px]
        found = sum(overlap.found for overlap in inside)
        mean = fmean(overlap.share for overlap in inside) if inside else None
        outside = fmean(overlap.outside_share for overlap in inside) if inside else None
        end = None if below_px == math.inf else int(below_px)
        sizes.append(RegionSize(int(from_px), end, len(inside), found, mean, outside))
    return tuple(sizes)
