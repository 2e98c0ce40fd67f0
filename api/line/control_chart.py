"""A p-chart: compares the defect rate of each hour, or another period, with that of those before.

Limits are exact binomial quantiles: by chance at most one period in 740 lies above the upper limit, and one
below the lower limit. This equals three sigma where the normal approximation is valid. It is not valid at
about one defect per period. If the periods before vary by more than chance, as with batches of material, the
limits are wider by the same factor (Laney, "Improved control charts for attributes", 2002).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import ceil, exp, lgamma, log, log1p, sqrt
from statistics import fmean
from typing import Literal

TAIL_PROBABILITY = 0.00135
"""Probability beyond three sigma on one side."""
MIN_INSPECTED = 20
"""Inspections that a period needs for limits."""
MIN_BASELINE_INSPECTED = 200
"""Inspections that a baseline needs."""
MIN_PERIODS = 12
"""Periods needed to estimate their spread."""
RANGE_TO_SIGMA = 1.128
"""Mean difference of two normal numbers, in sigma (d2 for n = 2)."""
ROUNDING = 1e-12


@dataclass(frozen=True)
class PeriodCount:
    """Inspected photographs of an hour or another period, and the defective ones among them."""

    begin: datetime
    inspected: int
    defective: int

    @property
    def rate(self) -> float | None:
        """Share of defective photographs; None if nothing was inspected."""
        return self.defective / self.inspected if self.inspected else None


@dataclass(frozen=True)
class Baseline:
    """The usual defect rate, and the factor (at least 1) by which periods vary more than by chance."""

    centre: float
    spread: float

    @classmethod
    def from_periods(cls, periods: Sequence[PeriodCount]) -> "Baseline | None":
        """Computes the baseline of consecutive periods; None if they have too few inspections."""
        inspected = sum(period.inspected for period in periods)
        if inspected < MIN_BASELINE_INSPECTED:
            return None
        # At least one defect: with a rate of 0, the first defect would exceed all limits.
        centre = max(sum(period.defective for period in periods), 1) / inspected
        return cls(centre, estimate_spread(periods, centre))

    def limits(self, inspected: int) -> tuple[float, float] | None:
        """Returns the lower and upper control limit of the rate; None for a period with few inspections."""
        if inspected < MIN_INSPECTED:
            return None
        highest = upper_count_limit(inspected, self.centre) / inspected
        lowest = 1 - upper_count_limit(inspected, 1 - self.centre) / inspected
        low, high = (self.centre + self.spread * (limit - self.centre) for limit in (lowest, highest))
        return max(low, 0.0), min(high, 1.0)


def exceeded_limit(period: PeriodCount, limits: tuple[float, float] | None) -> Literal["high", "low"] | None:
    """Returns which limit of `Baseline.limits` a period exceeds; None if it exceeds none."""
    if limits is None or period.rate is None:
        return None
    if period.rate > limits[1] + ROUNDING:
        return "high"
    return "low" if period.rate < limits[0] - ROUNDING else None


def estimate_spread(periods: Sequence[PeriodCount], centre: float) -> float:
    """Returns the factor by which rates of consecutive periods vary more than by chance; at least 1."""
    rates = [(one.rate, one.inspected) for one in periods if one.inspected >= MIN_INSPECTED]
    if len(rates) < MIN_PERIODS or not 0 < centre < 1:
        return 1.0
    sigmas = [((rate or 0.0) - centre) / sqrt(centre * (1 - centre) / count) for rate, count in rates]
    return max(1.0, fmean(abs(b - a) for a, b in pairwise(sigmas)) / RANGE_TO_SIGMA)


def upper_count_limit(trials: int, probability: float) -> int:
    """Returns the smallest k such that P(more than k hits in the trials) is at most `TAIL_PROBABILITY`."""
    if probability in (0.0, 1.0):
        return int(trials * probability)
    mean, variance = trials * probability, trials * probability * (1 - probability)
    k = min(trials, ceil(mean + 7 * sqrt(variance) + 30))  # the tail beyond is negligible
    term = exp(
        lgamma(trials + 1)
        - lgamma(k + 1)
        - lgamma(trials - k + 1)
        + k * log(probability)
        + (trials - k) * log1p(-probability)
    )
    at_least = term  # P(k hits or more)
    while k and at_least <= TAIL_PROBABILITY:
        term *= k / (trials - k + 1) * (1 - probability) / probability
        k -= 1
        at_least += term
    return k
