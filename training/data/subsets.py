"""Subsets of a data set."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


def pick_evenly(items: Sequence[Item], count: int) -> list[Item]:
    """Returns at most `count` items at equal distances, the first and the last among them."""
    places = np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int)
    return [items[place] for place in places.tolist()]
