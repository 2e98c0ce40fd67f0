"""Shifts in the zone of the plant. Berlin has summer time from 2026-03-29 to 2026-10-25."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from api.record.shifts import ShiftPlan

BERLIN = ShiftPlan([time(6), time(14), time(22)], ZoneInfo("Europe/Berlin"))


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "begin", "end"),
    [
        ("2026-01-15 12:59", "2026-01-15 05:00", "2026-01-15 13:00"),  # 06:00 and 14:00 in winter
        ("2026-01-15 13:00", "2026-01-15 13:00", "2026-01-15 21:00"),  # the first moment belongs to the next
        ("2026-07-15 03:59", "2026-07-14 20:00", "2026-07-15 04:00"),  # 22:00 of the day before, in summer
        ("2026-03-29 03:30", "2026-03-28 21:00", "2026-03-29 04:00"),  # to summer time: 7 hours
        ("2026-10-25 04:30", "2026-10-24 20:00", "2026-10-25 05:00"),  # and back: 9 hours
    ],
)
def test_the_current_shift(now, begin, end):
    shift = BERLIN.shift_at(utc(now))
    assert (shift.begin, shift.end) == (utc(begin), utc(end))


@pytest.mark.parametrize(
    ("now", "begin", "hours"),
    [("2026-01-15 22:59", "2026-01-14 23:00", 24), ("2026-03-29 12:00", "2026-03-28 23:00", 23)],
)
def test_the_current_day(now, begin, hours):
    day = BERLIN.day_at(utc(now))
    assert (day.begin, day.end) == (utc(begin), utc(begin) + timedelta(hours=hours))


def test_a_shift_that_begins_while_the_clock_changes():
    plan = ShiftPlan([time(2, 30)], BERLIN.zone)
    # On 03-29 there is no 02:30: it would have come half an hour after 01:00 UTC. On 10-25 there are two.
    assert plan.shift_at(utc("2026-03-29 01:29")).begin == utc("2026-03-28 01:30")
    assert plan.shift_at(utc("2026-03-29 01:30")).begin == utc("2026-03-29 01:30")
    assert plan.shift_at(utc("2026-10-25 01:30")).begin == utc("2026-10-25 00:30")


def test_one_shift_a_day_in_a_zone_with_a_half_hour():
    shift = ShiftPlan([time(5, 45)], ZoneInfo("Asia/Kolkata")).shift_at(utc("2026-01-15 00:14"))
    assert (shift.begin, shift.end) == (utc("2026-01-14 00:15"), utc("2026-01-15 00:15"))
