"""The order of the images: a pure function of seed and stage."""

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from segdec.errors import DatasetError


def balanced_order(labels: Sequence[int], draws: int, seed: Sequence[int]) -> NDArray[np.int64]:
    """Indices of the images to train on: good and defective in turn, whichever are the fewer.

    Defective images take the defect classes in turn. Each class is gone through whole, in a new
    order each time, before one of its images comes again.

    Args:
        labels: Class of each image; 0 is good.
        draws: How many indices.
        seed: Numbers that decide the order.

    Returns:
        [draws].

    Raises:
        DatasetError: If there is no good or no defective image.
    """
    classes = sorted(set(labels))
    defects = [label for label in classes if label != 0]
    if not defects or 0 not in classes:
        missing = "defective" if not defects else "good"
        raise DatasetError(
            f"The training split has {len(labels)} images and none is {missing}. "
            "Expected good and defective ones: check the splits."
        )
    queues = {label: _endless(np.flatnonzero(np.equal(labels, label)), [*seed, label]) for label in classes}
    turns = [0 if draw % 2 else defects[draw // 2 % len(defects)] for draw in range(draws)]
    return np.array([next(queues[label]) for label in turns], np.int64)


def _endless(indices: NDArray[np.int64], seed: Sequence[int]) -> Iterator[int]:
    """The indices again and again, each round in its own order."""
    for round_number in count():
        yield from np.random.default_rng([*seed, round_number]).permutation(indices)
