"""Estimates totals and shares from stratified samples, with 95 % confidence intervals.

The total of each stratum is known. The number of hits in its sample is hypergeometric, so its interval is
exact even for rare properties (Clopper-Pearson for a finite population). Strata are combined by MOVER:
squared distances to the limits add up like variances.

Reference:
    Zou, Donner (2008): Construction of confidence limits about effect measures: a general approach.
    Statistics in Medicine 27.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

TAIL = 0.025
"""Probability on each side of an interval."""
STEPS = 2**50
"""Steps of a share, 0…1."""


class Interval(NamedTuple):
    """An estimate with its limits; the value is None if a stratum has no sample."""

    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Sample:
    """A sample of `size` from a stratum of `total`, and its hits (a fraction if it is weighted)."""

    total: int
    size: int
    hits: Fraction | int

    @property
    def others(self) -> "Sample":
        """The sample with hits and misses exchanged."""
        return Sample(self.total, self.size, self.size - self.hits)

    def estimate(self) -> Interval:
        """Estimates the number of hits in the stratum."""
        if not self.size:
            return Interval(None, 0.0, float(self.total)) if self.total else Interval(0.0, 0.0, 0.0)
        low = _lowest(self.total, self.size, math.floor(self.hits))
        high = self.total - _lowest(self.total, self.size, math.floor(self.size - self.hits))
        return Interval(float(self.total * self.hits / self.size), low, high)


@lru_cache(maxsize=4096)
def _lowest(total: int, size: int, hits: int) -> int:
    """Returns the smallest number of hits for which P(`hits` or more in the sample) exceeds `TAIL`."""
    possible = range(hits, total - size + hits)
    return hits + bisect_left(possible, True, key=lambda having: _is_likely(hits, having, size, total))


def _is_likely(hits: int, having: int, size: int, total: int) -> bool:
    if hits * total <= size * having:  # then it exceeds a half: the median is the rounded mean
        return True
    choices = _log_choices(having, hits) + _log_choices(total - having, size - hits)
    term = math.exp(choices - _log_choices(total, size))
    summed, most = 0.0, min(size, having)
    for number in range(hits, most + 1):
        summed += term
        if summed > TAIL:
            return True
        term *= (having - number) * (size - number)
        term /= (number + 1) * (total - having - size + number + 1)
        if summed + term * (most - number) <= TAIL:  # terms decrease above the mean
            return False
    return False


def _log_choices(total: int, size: int) -> float:
    return math.lgamma(total + 1) - math.lgamma(size + 1) - math.lgamma(total - size + 1)


# === Several strata ===


def add(parts: Iterable[tuple[float, Interval]]) -> Interval:
    """Adds independent estimates, each times a factor.

    Limits of an estimate without a sample are added linearly, not squared.
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
    """Estimates the number of hits in all strata together."""
    value, low, high = add((1.0, sample.estimate()) for sample in samples)
    least = float(sum(sample.hits for sample in samples))
    most = float(sum(sample.total - sample.size + sample.hits for sample in samples))
    return Interval(value, max(low, least), min(high, most))


def estimate_share(part: Sequence[Sample], rest: Sequence[Sample]) -> Interval:
    """Estimates the share of `part` in all hits of `part` and `rest`.

    A share s is within the limits if the interval of (1 − s) · part − s · rest contains 0.
    """
    of_part = [sample.estimate() for sample in part]
    of_rest = [sample.estimate() for sample in rest]

    def balance(share: float) -> Interval:
        return add([*((1 - share, number) for number in of_part), *((-share, number) for number in of_rest)])

    here, there = add((1.0, number) for number in of_part), add((1.0, number) for number in of_rest)
    value = None
    if here.value is not None and there.value is not None and here.value + there.value > 0:
        value = here.value / (here.value + there.value)
    low = _last(lambda share: balance(share).low > 0)
    high = _last(lambda share: balance(share).high >= 0)
    return Interval(value, low if value is None else min(low, value), high)


def _last(holds: Callable[[float], bool]) -> float:
    """Returns the largest share up to which the condition holds."""
    first_false = bisect_left(range(STEPS + 1), True, key=lambda step: not holds(step / STEPS))
    return max(first_false - 1, 0) / STEPS
