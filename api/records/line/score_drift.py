"""Whether scores drift: the mean log-odds of the last hours against those of the days before.

Thousands of inspections make any difference significant, and hours differ for good reasons. So a drift is
told of only where it is large by both measures: half a standard deviation of single photographs, and three of
the means of hours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from typing import Literal

SHARE_OF_SIGMA = 0.5
"""Of the standard deviation of single photographs."""
HOURS_SIGMAS = 3.0
"""Standard deviations of the means of hours."""
MIN_RECENT_INSPECTED = 50
"""Inspections of the last hours from which their mean tells something."""
MIN_INSPECTED = 20
"""Inspections of an hour before from which its mean does."""
MIN_HOURS = 12
"""Such hours from which it is known how they differ."""


@dataclass(frozen=True)
class HourScores:
    """The log-odds of the photographs of an hour.

    Attributes:
        hour: When it began.
        count: Photographs.
        total: Sum of their log-odds.
        squares: Sum of the squares of these.
    """

    hour: datetime
    count: int
    total: float
    squares: float

    @property
    def mean(self) -> float:
        """Of the log-odds."""
        return self.total / self.count


@dataclass(frozen=True)
class Drift:
    """What became of the scores.

    Attributes:
        now: Mean log-odds of the last hours.
        before: Of the days before.
        least: By how much they must differ for a drift.
    """

    now: float
    before: float
    least: float

    @property
    def towards(self) -> Literal["defective", "good"] | None:
        """Where scores drift to; None where they do not."""
        if abs(self.now - self.before) < self.least:
            return None
        return "defective" if self.now > self.before else "good"


def find_drift(now: Sequence[HourScores], before: Sequence[HourScores]) -> Drift | None:
    """Compares the last hours with those before; None where there are too few to tell.

    Args:
        now: Of the same model as `before`.
        before: Those with few inspections are left out.
    """
    usual = [hour for hour in before if hour.count >= MIN_INSPECTED]
    count_now, count = (sum(hour.count for hour in hours) for hours in (now, usual))
    if count_now < MIN_RECENT_INSPECTED or len(usual) < MIN_HOURS:
        return None
    mean = sum(hour.total for hour in usual) / count
    sigma = sqrt(max(sum(hour.squares for hour in usual) / count - mean**2, 0.0))
    between = sqrt(sum((hour.mean - mean) ** 2 for hour in usual) / (len(usual) - 1))
    least = max(SHARE_OF_SIGMA * sigma, HOURS_SIGMAS * between)
    return Drift(sum(hour.total for hour in now) / count_now, mean, least)
