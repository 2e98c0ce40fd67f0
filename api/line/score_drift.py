"""Detects score drift: compares the mean log-odds of the last hours with those of the days before.

With thousands of inspections every difference is significant, and hours vary for good reasons. Therefore a
drift must exceed 0.5 standard deviations of single photographs and 3 standard deviations of hourly means.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Literal, NamedTuple

from api.line.schemas import ScoreDrift

DRIFT_HOURS = 4
"""Last hours, the current one included, whose scores are compared with those of the week before them."""
MIN_DRIFT_SIGMAS = 0.5
"""Minimum drift in standard deviations of single photographs."""
MIN_DRIFT_HOURLY_SIGMAS = 3.0
"""Minimum drift in standard deviations of hourly means."""
MIN_RECENT_INSPECTED = 50
"""Inspections needed in the last hours."""
MIN_INSPECTED = 20
"""Inspections needed in an earlier hour; others are skipped."""
MIN_HOURS = 12
"""Earlier hours needed."""


class HourScores(NamedTuple):
    """Number, sum and sum of squares of the log-odds of an hour."""

    inspected: int
    total: float
    squares: float

    @property
    def mean(self) -> float:
        return self.total / self.inspected


def find_drift(now: Sequence[HourScores], before: Sequence[HourScores]) -> ScoreDrift | None:
    """Compares the last hours with earlier ones of the same model; None if there are too few inspections."""
    usual = [hour for hour in before if hour.inspected >= MIN_INSPECTED]
    count_now, count = (sum(hour.inspected for hour in hours) for hours in (now, usual))
    if count_now < MIN_RECENT_INSPECTED or len(usual) < MIN_HOURS:
        return None
    mean = sum(hour.total for hour in usual) / count
    sigma = sqrt(max(sum(hour.squares for hour in usual) / count - mean**2, 0.0))
    between = sqrt(sum((hour.mean - mean) ** 2 for hour in usual) / (len(usual) - 1))
    least = max(MIN_DRIFT_SIGMAS * sigma, MIN_DRIFT_HOURLY_SIGMAS * between)
    recent = sum(hour.total for hour in now) / count_now
    towards: Literal["defective", "good"] | None = None
    if abs(recent - mean) >= least:
        towards = "defective" if recent > mean else "good"
    return ScoreDrift(now=recent, before=mean, least=least, towards=towards, hours=DRIFT_HOURS)
