"""Days, weeks and months in the plant's time zone."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from api.record.shifts import Span

PeriodKind = Literal["day", "week", "month"]


def list_periods(kind: PeriodKind, first: date, last: date, zone: ZoneInfo) -> Iterator[Span]:
    """Yields the periods that contain the days from `first` to `last`; weeks begin on Monday."""
    day = _begin(kind, first)
    while day <= last:
        following = _following(kind, day)
        yield Span(_midnight(day, zone), _midnight(following, zone))
        day = following


def _begin(kind: PeriodKind, day: date) -> date:
    if kind == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if kind == "month" else day


def _following(kind: PeriodKind, begin: date) -> date:
    if kind == "month":
        return (begin + timedelta(days=31)).replace(day=1)
    return begin + timedelta(days=7 if kind == "week" else 1)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
