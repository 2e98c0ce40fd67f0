"""Stations of which nothing comes any more, though it came regularly."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

MIN_HOURS = 3
"""Hours of the last day with an inspection, from which a station works regularly."""
MIN_INSPECTED = 20
"""Inspections of the last day, likewise."""
GAPS = 10
"""Usual gaps that may pass."""
MIN_SILENCE = timedelta(minutes=5)
"""That may always pass: a change of tools, a pause."""


@dataclass(frozen=True)
class StationActivity:
    """What a station did in the last day.

    Attributes:
        station: Its name; empty where none was named.
        hours: In which something was inspected.
        inspected: Photographs.
        last_at: When the last one was.
    """

    station: str
    hours: int
    inspected: int
    last_at: datetime

    @property
    def usual_gap(self) -> timedelta:
        """From one inspection to the next, in the hours in which there were any."""
        return timedelta(hours=self.hours / self.inspected)


def find_silent(stations: Iterable[StationActivity], now: datetime) -> Iterator[StationActivity]:
    """Yields those that worked regularly and are silent for ten of their usual gaps, and for five minutes."""
    for day in stations:
        regular = day.hours >= MIN_HOURS and day.inspected >= MIN_INSPECTED
        if regular and now - day.last_at > max(MIN_SILENCE, GAPS * day.usual_gap):
            yield day
