"""Subsets of a data set."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")


def pick_evenly(items: Sequence[Item], count: int) -> list[Item]:
    """Returns at most `count` items at equal distances, the first and the last among them."""
    places = np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int)
    return [items[place] for place in places.tolist()]


def pick_of_both_kinds(indices: Sequence[int], labels: Sequence[Any], count: int) -> list[int]:
    """Returns at most `count` good examples, with the label 0, then as many defective ones, evenly."""
    kinds = ([index for index in indices if (labels[index] != 0) == kind] for kind in (False, True))
    return [index for own in kinds for index in pick_evenly(own, count)]
