"""True defect regions: how much of each a mask covers, and how that depends on their size."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from training.evaluation.pixel_counts import ratio

SIZE_EDGES_PX = (64, 256, 1024)
"""Areas that part the size bins, px² of the photograph: below 8 × 8, 16 × 16, 32 × 32, and above."""

FOUND_OVERLAP = 0.1
"""Share of its pixels that must be predicted for a region to count as found.

A single pixel would count a neighbouring false alarm as a find; half of the pixels would fail a mask that
marks the place but not the outline, as one of 1/8 of the resolution does.
"""


@dataclass(frozen=True)
class Overlap:
    """One true region, its pixels touching each other at sides or corners.

    Attributes:
        area_px: Its pixels in the photograph.
        covered_px: Those of them that the predicted mask holds.
    """

    area_px: int
    covered_px: int

    @property
    def share(self) -> float:
        """Covered part of the region, 0 to 1."""
        return self.covered_px / self.area_px

    @property
    def found(self) -> bool:
        """Whether at least `FOUND_OVERLAP` of it is covered."""
        return self.share >= FOUND_OVERLAP


@dataclass(frozen=True)
class RegionSize:
    """The true regions of one size bin.

    Attributes:
        from_px: Smallest area in the bin, px.
        below_px: Area from which the next bin begins, px; None for the last one.
        regions: How many there are.
        found: Those of which at least `FOUND_OVERLAP` is covered.
        mean_overlap: Mean covered share; None without a region.
    """

    from_px: int
    below_px: int | None
    regions: int
    found: int
    mean_overlap: float | None

    @property
    def found_share(self) -> float | None:
        """Share of the regions that are found; None without one."""
        return ratio(self.found, self.regions)

    def to_dict(self) -> dict[str, Any]:
        """Returns all figures, ready for JSON."""
        return {**asdict(self), "found_share": self.found_share}


@dataclass(frozen=True)
class TrueRegions:
    """The regions of one true mask.

    Attributes:
        pixels: Flat places [P] of the defect pixels in the mask.
        numbers: Region of each of them [P], from 0.
        areas_px: Pixels of each region [R].
    """

    pixels: NDArray[np.intp]
    numbers: NDArray[np.intp]
    areas_px: NDArray[np.int64]


def find_true_regions(truth: NDArray[np.uint8]) -> TrueRegions:
    """Splits the defect pixels (not 0) of a mask [H, W] into 8-connected regions."""
    defect = (truth != 0).astype(np.uint8)
    pixels = np.flatnonzero(defect)
    x, y, width, height = cv2.boundingRect(defect)  # labelling is slow, defects are small
    window = np.ascontiguousarray(defect[y : y + height, x : x + width])
    if not pixels.size:
        return TrueRegions(pixels, np.empty(0, np.intp), np.empty(0, np.int64))
    _, labels = cv2.connectedComponents(window, connectivity=8)
    numbers = np.asarray(labels, np.intp)[window != 0] - 1  # in the order of `pixels`
    return TrueRegions(pixels, numbers, np.bincount(numbers))


def measure_overlaps(mask: NDArray[np.uint8], truth: NDArray[np.uint8] | None) -> tuple[Overlap, ...]:
    """Measures how much of each true region a predicted mask [H, W] covers; None: a truth without defect."""
    if truth is None:
        return ()
    regions = find_true_regions(truth)
    hit = mask.ravel()[regions.pixels] != 0
    covered = np.bincount(regions.numbers[hit], minlength=len(regions.areas_px))
    return tuple(
        Overlap(int(area), int(pixels)) for area, pixels in zip(regions.areas_px, covered, strict=True)
    )


def measure_sizes(overlaps: Iterable[Overlap]) -> tuple[RegionSize, ...]:
    """Measures the regions in bins of their area, the smallest first."""
    bins: list[list[Overlap]] = [[] for _ in range(len(SIZE_EDGES_PX) + 1)]
    for overlap in overlaps:
        bins[int(np.searchsorted(SIZE_EDGES_PX, overlap.area_px, side="right"))].append(overlap)
    limits = (1, *SIZE_EDGES_PX, None)
    return tuple(_measure_size(limits[place], limits[place + 1], inside) for place, inside in enumerate(bins))


def _measure_size(from_px: int | None, below_px: int | None, inside: Sequence[Overlap]) -> RegionSize:
    shares = [overlap.share for overlap in inside]
    return RegionSize(
        from_px=from_px or 1,
        below_px=below_px,
        regions=len(inside),
        found=sum(overlap.found for overlap in inside),
        mean_overlap=sum(shares) / len(shares) if shares else None,
    )
