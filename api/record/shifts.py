"""Start and end of shifts and days in the plant's time zone, daylight saving time included."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from api.record.settings import RecordSettings

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Span:
    """A time span in UTC, without its end."""

    begin: datetime
    end: datetime


@dataclass(frozen=True)
class ShiftPlan:
    """Start times of shifts in the plant's zone, the same every day; each shift lasts until the next start.

    A time that the clock skips in spring is shifted by an hour; if a time occurs twice in autumn, the first
    one is used.
    """

    starts: Sequence[time]
    zone: ZoneInfo

    @classmethod
    def from_settings(cls, settings: RecordSettings) -> "ShiftPlan":
        """Reads the plan from the settings."""
        return cls(settings.record_shifts, ZoneInfo(settings.record_zone))

    def shift_at(self, now: datetime) -> Span:
        """Returns the shift at a time."""
        return self._span(self.starts, now)

    def day_at(self, now: datetime) -> Span:
        """Returns the day, midnight to midnight, at a time."""
        return self._span([time()], now)

    def _span(self, starts: Sequence[time], now: datetime) -> Span:
        today = now.astimezone(self.zone).date()
        # Two days before and after, because a skipped time is an hour late.
        days = [today + shift * DAY for shift in range(-2, 3)]
        # In UTC, because Python compares times of one zone by wall clock.
        moments = [datetime.combine(day, at, self.zone).astimezone(UTC) for day in days for at in starts]
        begin = max(moment for moment in moments if moment <= now)
        return Span(begin, min(moment for moment in moments if moment > now))
