"""Finds stations that inspected regularly and have stopped."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

MIN_HOURS = 3
"""Hours with inspections in the last day that make a station regular."""
MIN_INSPECTED = 20
"""Inspections in the last day that make a station regular."""
SILENT_AFTER_GAPS = 10
"""Usual gaps after which a station counts as silent."""
MIN_SILENCE = timedelta(minutes=5)
"""Shortest silence that counts, so that tool changes and breaks do not."""


@dataclass(frozen=True)
class StationActivity:
    """Activity of a station in a day: hours with inspections, number of inspections, and time of the last."""

    station: str
    hours: int
    inspected: int
    last_at: datetime

    @property
    def usual_gap(self) -> timedelta:
        """Mean time between inspections in active hours."""
        return timedelta(hours=self.hours / self.inspected)


def find_silent(stations: Iterable[StationActivity], now: datetime) -> Iterator[StationActivity]:
    """Yields regular stations that are silent for at least ten usual gaps and at least five minutes."""
    for day in stations:
        regular = day.hours >= MIN_HOURS and day.inspected >= MIN_INSPECTED
        if regular and now - day.last_at > max(MIN_SILENCE, SILENT_AFTER_GAPS * day.usual_gap):
            yield day
