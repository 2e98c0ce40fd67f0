"""When a shift and a day of the plant begin, by the clock on its wall, however that is changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from api.settings import Settings

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Span:
    """A piece of time.

    Attributes:
        begin: In UTC.
        end: In UTC; no longer part of it.
    """

    begin: datetime
    end: datetime


@dataclass(frozen=True)
class ShiftPlan:
    """When shifts begin, every day alike.

    A time that the clock leaves out, as in the night to summer time, is the moment at which it would have
    come; of one that comes twice, the first counts.

    Attributes:
        starts: Of the shifts; each lasts until the next one.
        zone: Whose clock it is.
    """

    starts: Sequence[time]
    zone: ZoneInfo

    @classmethod
    def from_settings(cls, settings: Settings) -> "ShiftPlan":
        """Reads it from what the operator set."""
        return cls(settings.record_shifts, ZoneInfo(settings.record_zone))

    def shift_at(self, now: datetime) -> Span:
        """Returns the shift that is running at `now`."""
        return self._span(self.starts, now)

    def day_at(self, now: datetime) -> Span:
        """Returns the day, midnight to midnight, that is running at `now`."""
        return self._span([time()], now)

    def _span(self, starts: Sequence[time], now: datetime) -> Span:
        today = now.astimezone(self.zone).date()
        # Two days back and on: a time that the clock leaves out may come an hour after its day's own.
        days = [today + shift * DAY for shift in range(-2, 3)]
        # In UTC: times of one zone are compared, and counted, as if its clock were never changed.
        moments = [datetime.combine(day, at, self.zone).astimezone(UTC) for day in days for at in starts]
        begin = max(moment for moment in moments if moment <= now)
        return Span(begin, min(moment for moment in moments if moment > now))
