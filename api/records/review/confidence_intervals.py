"""How many there are in all, reckoned from a sample of each of several kinds, with intervals of 95 %.

Of each kind the total is known, and how many of a sample of it have a property. That number is
hypergeometric, so the interval of one kind is exact, however rare the property (Clopper and Pearson's, of a
finite total). Kinds are added by MOVER: squares of the distances to the limits add up as variances do.

Reference:
    Zou, Donner (2008): Construction of confidence limits about effect measures: a general approach.
    Statistics in Medicine 27.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

TAIL = 0.025
"""On either side of an interval."""
STEPS = 50
"""Of a bisection of 0…1."""


class Interval(NamedTuple):
    """A number with its interval.

    Attributes:
        value: None where nothing of some kind was looked at.
        low: At least so much.
        high: At most.
    """

    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Sample:
    """A sample of one kind.

    Attributes:
        total: How many there are of the kind.
        size: Of the sample.
        found: How many of the sample have the property; between two numbers, both are considered.
    """

    total: int
    size: int
    found: Fraction | int

    @property
    def others(self) -> "Sample":
        """The same of those that have not the property."""
        return Sample(self.total, self.size, self.size - self.found)

    def estimate(self) -> Interval:
        """Reckons how many of the total have the property."""
        if not self.size:
            return Interval(None, 0.0, float(self.total)) if self.total else Interval(0.0, 0.0, 0.0)
        low = _lowest(self.total, self.size, math.floor(self.found))
        high = self.total - _lowest(self.total, self.size, math.floor(self.size - self.found))
        return Interval(float(self.total * self.found / self.size), low, high)


@lru_cache(maxsize=4096)
def _lowest(total: int, size: int, found: int) -> int:
    """The lowest number of them with which a sample has `found` or more in `TAIL` of all cases."""
    low, high = found, total - size + found
    if found == 0:
        return 0
    while low < high:
        middle = (low + high) // 2
        if _is_likely(found, middle, size, total):
            high = middle
        else:
            low = middle + 1
    return low


def _is_likely(found: int, having: int, size: int, total: int) -> bool:
    """Whether a sample has `found` or more in more than `TAIL` of all cases."""
    if found * total <= size * having:  # so it is in half of them: the median is the mean, rounded
        return True
    choices = _log_choices(having, found) + _log_choices(total - having, size - found)
    term = math.exp(choices - _log_choices(total, size))
    summed, most = 0.0, min(size, having)
    for number in range(found, most + 1):
        summed += term
        if summed > TAIL:
            return True
        term *= (having - number) * (size - number)
        term /= (number + 1) * (total - having - size + number + 1)
        if summed + term * (most - number) <= TAIL:  # above the mean, each is less likely than the one before
            return False
    return False


def _log_choices(total: int, size: int) -> float:
    return math.lgamma(total + 1) - math.lgamma(size + 1) - math.lgamma(total - size + 1)


# === Several kinds ===


def add(parts: Iterable[tuple[float, Interval]]) -> Interval:
    """Adds numbers of which the samples have nothing to do with each other, each times its factor.

    What was not looked at at all is anything between its limits.
    """
    value, below, above, least, most = 0.0, 0.0, 0.0, 0.0, 0.0
    known = True
    for factor, (number, *limits) in parts:
        low, high = sorted(factor * limit for limit in limits)
        if number is None:
            known, least, most = False, least + low, most + high
            continue
        value += factor * number
        below += (factor * number - low) ** 2
        above += (high - factor * number) ** 2
    low, high = value + least - math.sqrt(below), value + most + math.sqrt(above)
    return Interval(value if known else None, low, high)


def estimate_total(samples: Sequence[Sample]) -> Interval:
    """Reckons how many of several kinds together have the property."""
    value, low, high = add((1.0, sample.estimate()) for sample in samples)
    least = float(sum(sample.found for sample in samples))
    most = float(sum(sample.total - sample.size + sample.found for sample in samples))
    return Interval(value, max(low, least), min(high, most))


def estimate_share(part: Sequence[Sample], rest: Sequence[Sample]) -> Interval:
    """Reckons the share that `part` has of all with the property, part and rest.

    A share s is within the limits where (1 − s) · part − s · rest may be 0.
    """
    of_part = [sample.estimate() for sample in part]
    of_rest = [sample.estimate() for sample in rest]

    def lean(share: float) -> Interval:
        return add([*((1 - share, number) for number in of_part), *((-share, number) for number in of_rest)])

    here, there = add((1.0, number) for number in of_part), add((1.0, number) for number in of_rest)
    value = None
    if here.value is not None and there.value is not None and here.value + there.value > 0:
        value = here.value / (here.value + there.value)
    low = _last(lambda share: lean(share).low > 0)
    high = _last(lambda share: lean(share).high >= 0)
    return Interval(value, low if value is None else min(low, value), high)


def _last(holds: Callable[[float], bool]) -> float:
    """The end of the shares from 0 on for which something holds."""
    if not holds(0.0):
        return 0.0
    if holds(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
