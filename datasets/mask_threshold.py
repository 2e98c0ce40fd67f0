"""Masks of more than two values, and the threshold that fits them."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.class_values import NAMED_VALUES, list_values
from datasets.annotations.indexed_mask import MAX_INDEX
from segdec.errors import DatasetError


class UnclearMaskError(DatasetError):
    """A mask has more than two values, so that it is unclear which pixels are defective.

    Attributes:
        found: The message without the threshold.
        threshold: The threshold that fits this mask.
    """

    def __init__(self, name: str, mask: NDArray[np.uint8], values: list[int]) -> None:
        self.found = f"The mask {name} has {len(values)} values: {list_values(values)}."
        self.threshold = _fitting_threshold(mask, values)
        super().__init__(f"{self.found} {advise([self.threshold])}")


def advise(thresholds: Iterable[int]) -> str:
    """Returns what to do about masks that need these thresholds."""
    counts = Counter(thresholds)
    threshold, fitting = max(counts.items(), key=lambda each: (each[1], each[0]))  # of equals, the safer one
    share = f" (it fits {fitting} of {counts.total()} such masks)" if len(counts) > 1 else ""
    return (
        f"Expected 0 and one other value. Pixels above {threshold} seem to be the defects{share}: give "
        f"--mask-threshold {threshold}, in an experiment --data.mask-threshold {threshold}. If the values "
        "are classes, name them in data.mask_values."
    )


def _fitting_threshold(mask: NDArray[np.uint8], values: list[int]) -> int:
    """Half of the highest value for smooth edges, else the lowest value or, if that is not 0, the middle.

    Smooth edges reach values above `MAX_INDEX`; below, all values are classes.
    """
    lowest, highest = values[0], values[-1]
    if lowest > 0:
        return (lowest + highest) // 2
    if highest <= MAX_INDEX:
        return 0
    counts = np.bincount(mask.reshape(-1))
    edges = counts[1:highest].sum()
    return highest // 2 if len(values) > NAMED_VALUES or edges < counts[highest] else 0
