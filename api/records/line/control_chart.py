"""The defect rate of each hour, and whether it is that of the hours before: a p-chart.

Limits are exact: by chance alone, one hour of 740 at most lies above the upper one, and one below the lower
one. That is what three sigma mean where the normal distribution holds; with one defect in an hour it does
not. Where the hours before differed by more than chance, as they do when batches of material differ, the
limits are wider in the same measure (Laney, "Improved control charts for attributes", 2002).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import ceil, exp, lgamma, log, log1p, sqrt
from statistics import fmean
from typing import Literal

BEYOND = 0.00135
"""Probability of what lies beyond three sigma, on one side."""
MIN_INSPECTED = 20
"""Inspections from which an hour has limits."""
MIN_BASELINE_INSPECTED = 200
"""Inspections from which their rate is a centre."""
MIN_HOURS = 12
"""Hours from which it can be told how much they differ."""
RANGE_TO_SIGMA = 1.128
"""Mean distance of two numbers of a normal distribution, in sigma."""
ROUNDING = 1e-12


@dataclass(frozen=True)
class HourCount:
    """What an hour had.

    Attributes:
        hour: When it began.
        inspected: Photographs.
        defective: Of these.
    """

    hour: datetime
    inspected: int
    defective: int

    @property
    def rate(self) -> float | None:
        """Share of the defective; None where nothing was inspected."""
        return self.defective / self.inspected if self.inspected else None


@dataclass(frozen=True)
class Baseline:
    """What the defect rate of an hour is compared with.

    Attributes:
        centre: The rate, 0…1.
        spread: How many times as much the hours differ as by chance; at least 1.
    """

    centre: float
    spread: float

    @classmethod
    def of(cls, hours: Sequence[HourCount]) -> "Baseline | None":
        """Reckons it from hours in their order; None where they had too few inspections."""
        inspected = sum(hour.inspected for hour in hours)
        if inspected < MIN_BASELINE_INSPECTED:
            return None
        # Without a single defect before, the first would be beyond all limits: as if there had been one.
        centre = max(sum(hour.defective for hour in hours), 1) / inspected
        return cls(centre, estimate_spread(hours, centre))

    def limits(self, inspected: int) -> tuple[float, float] | None:
        """Returns the lowest and the highest rate that are usual; None of an hour with few inspections."""
        if inspected < MIN_INSPECTED:
            return None
        highest = upper_count_limit(inspected, self.centre) / inspected
        lowest = 1 - upper_count_limit(inspected, 1 - self.centre) / inspected
        low, high = (self.centre + self.spread * (limit - self.centre) for limit in (lowest, highest))
        return max(low, 0.0), min(high, 1.0)

    def judge(self, hour: HourCount) -> Literal["high", "low"] | None:
        """Says on which side of the limits an hour is; None within them."""
        limits = self.limits(hour.inspected)
        if limits is None or hour.rate is None:
            return None
        if hour.rate > limits[1] + ROUNDING:
            return "high"
        return "low" if hour.rate < limits[0] - ROUNDING else None


def estimate_spread(hours: Sequence[HourCount], centre: float) -> float:
    """Returns how many times as much the rates of successive hours differ as by chance; at least 1.

    Args:
        hours: In their order; those with few inspections are left out.
        centre: Their rate.
    """
    rates = [(hour.rate, hour.inspected) for hour in hours if hour.inspected >= MIN_INSPECTED]
    if len(rates) < MIN_HOURS or not 0 < centre < 1:
        return 1.0
    sigmas = [((rate or 0.0) - centre) / sqrt(centre * (1 - centre) / count) for rate, count in rates]
    return max(1.0, fmean(abs(b - a) for a, b in pairwise(sigmas)) / RANGE_TO_SIGMA)


def upper_count_limit(trials: int, probability: float) -> int:
    """Returns the least k for which more than k hits have a probability of `BEYOND` at most.

    Args:
        trials: 1 or more.
        probability: Of a hit, 0…1.
    """
    if probability in (0.0, 1.0):
        return int(trials * probability)
    mean, variance = trials * probability, trials * probability * (1 - probability)
    k = min(trials, ceil(mean + 12 * sqrt(variance) + 30))  # beyond it there is nothing that counts
    term = exp(
        lgamma(trials + 1)
        - lgamma(k + 1)
        - lgamma(trials - k + 1)
        + k * log(probability)
        + (trials - k) * log1p(-probability)
    )
    at_least = term  # the probability of k hits or more
    while k and at_least <= BEYOND:
        term *= k / (trials - k + 1) * (1 - probability) / probability
        k -= 1
        at_least += term
    return k
