"""The status of a line, computed from rows of both databases."""

import asyncio
import itertools
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import event

from api.line.line_status import LineMonitor
from api.record.shifts import ShiftPlan
from api.record.uninspected_photograph import UninspectedPhotograph
from tests.api.record.databases import sqlite_only
from tests.api.record.filled_record import make_record, make_row, stock

NOW = datetime(2026, 1, 15, 8, 20, tzinfo=UTC)
"""Twenty past nine in Berlin."""


class Line:
    """A record to which inspections of any time are added."""

    def __init__(self, url, folder):
        self.record = make_record(url, folder)
        asyncio.run(self.record.open())
        plan = ShiftPlan([time(6, 30), time(14, 30)], ZoneInfo("Europe/Berlin"))
        self._monitor = LineMonitor(self.record, plan)
        self._numbers = itertools.count(1)

    def add(self, *inspections):
        """Adds inspections: minutes before now, label, and other columns."""
        stock(self.record._engine, [self._row(*inspection) for inspection in inspections])

    def _row(self, minutes, label, columns=None):
        number = next(self._numbers)
        row = make_row(number, inspected_at=NOW - timedelta(minutes=minutes), station="a", label=label)
        row |= {"part_id": f"part {number}", "log_odds": -4.0 if label == "good" else 4.0}
        return row | (columns or {})

    def leave_out(self, minutes, station="a", part_id="x", count=1):
        """Logs photographs that were not inspected."""
        problem = 422, "truncated_image", "It ends too early."
        at = NOW - timedelta(minutes=minutes)
        self.record.uninspected.add(UninspectedPhotograph(station, part_id, "", *problem, at, count))

    def status(self, station=None):
        return asyncio.run(self._monitor.status(station, NOW))


@pytest.fixture
def line(database_url, tmp_path):
    line = Line(database_url, tmp_path / "record")
    yield line
    line.record.close()


@sqlite_only
def test_the_status_of_an_empty_record(line):
    status = line.status()
    assert (
        status.last is None and status.uninspected == status.defects == status.quiet == status.stations == []
    )
    assert status.shift.begin == datetime(2026, 1, 15, 5, 30, tzinfo=UTC)
    assert status.day.begin == datetime(2026, 1, 14, 23, tzinfo=UTC)
    assert status.chart.centre is status.drift is status.unavailable is None
    assert len(status.chart.hours) == 24 and not any(hour.inspected for hour in status.chart.hours)


@sqlite_only
def test_the_last_inspection_and_its_verdict(line):
    line.add((3, "review"), (2, "dent"), (1, "good", {"station": "b"}))
    last = line.status("a").last
    assert (last.record_id, last.part_id, last.verdict, last.label) == (2, "part 2", "defect", "dent")
    assert last.inspected_at == NOW - timedelta(minutes=2)
    assert line.status().last.station == "b"
    assert line.status("c").last is None
    assert line.status().stations == ["a", "b"]


def test_counts_of_the_shift_and_the_day(line):
    # The shift began 170 minutes ago, at half past, the day 560 minutes ago.
    line.add((561, "good"), (560, "dent"), (200, "review"), (171, "good"), (170, "good"), (169, "dent"))
    line.add((60, "good"), (10, "crack"), (5, "dent"), (1, "review", {"station": "b"}))
    shift, day = line.status().shift, line.status().day
    assert (shift.inspected, shift.good, shift.review) == (6, 2, 1)
    assert shift.defective == {"crack": 1, "dent": 2}
    assert (day.inspected, day.good, day.review, day.defective) == (9, 3, 2, {"crack": 1, "dent": 3})
    assert line.status("b").shift.inspected == 1


@sqlite_only
def test_an_uninspected_photograph_is_unresolved_until_its_station_inspects_again(line):
    line.add((9, "good"), (8, "good", {"station": "b"}))
    line.leave_out(5, part_id="lost")
    line.add((4, "good", {"station": "b"}))
    for station in (None, "a"):
        status = line.status(station)
        (photograph,) = status.uninspected
        assert (photograph.station, photograph.part_id, photograph.followed) == ("a", "lost", False)
        assert status.shift.not_inspected == status.day.not_inspected == 1
    assert line.status("b").uninspected == [] and line.status("b").shift.not_inspected == 0
    line.add((3, "dent"))
    assert line.status().uninspected[0].followed
    assert line.status().shift.not_inspected == 1


@sqlite_only
def test_an_uninspected_photograph_of_an_unknown_station_is_resolved_by_any_station(line):
    line.leave_out(5, station="")
    line.add((4, "good", {"station": "b"}))
    assert not line.status("a").uninspected[0].followed
    assert line.status("b").uninspected[0].followed and line.status().uninspected[0].followed


def test_uninspected_photographs_in_the_database_and_in_memory_are_combined(line):
    line.leave_out(100, part_id="old")
    line.leave_out(90, station="b", part_id="its own")
    line.leave_out(300, station="c", part_id="of the shift before")
    line.leave_out(170 + 12 * 60 + 1, station="d", part_id="of yesterday")
    line.record.uninspected.write()
    line.leave_out(1, part_id="new", count=3)
    status = line.status()
    shown = [("a", "new"), ("b", "its own"), ("c", "of the shift before")]
    assert [(one.station, one.part_id) for one in status.uninspected] == shown
    assert (status.shift.not_inspected, status.day.not_inspected) == (5, 6)


@sqlite_only
def test_uninspected_photographs_in_memory_are_shown_during_an_outage_of_the_database(line):
    line.add((9, "good"))

    @event.listens_for(line.record._engine, "begin", insert=True)
    def fail(_):
        raise OSError("gone")

    line.leave_out(1, part_id="lost")
    status = line.status()
    assert status.unavailable.startswith("The record cannot be used now")
    assert [one.part_id for one in status.uninspected] == ["lost"] and not status.uninspected[0].followed
    assert status.last is status.shift is status.chart is None


def test_the_last_defects_of_a_week(line):
    day = 24 * 60
    line.add((9 * day, "dent"), *((100 - n, "dent", {"station": "b"}) for n in range(5)), (50, "review"))
    line.add(*((40 - n, "dent" if n % 2 else "crack") for n in range(20)), (1, "good"))
    assert [defect.record_id for defect in line.status().defects] == [*range(27, 19, -1)]
    assert [defect.record_id for defect in line.status("b").defects] == [6, 5, 4, 3, 2]
    assert {defect.verdict for defect in line.status().defects} == {"defect"}


@sqlite_only
def test_the_chart_compares_the_day_with_the_week_before_it(line):
    hour = 60
    before = [(30 * hour, "dent" if n < 2 else "good") for n in range(200)]  # 1 %
    now = [(1, "dent" if n < 5 else "good") for n in range(40)]
    line.add(*before, *now)
    chart = line.status().chart
    assert (chart.centre, chart.spread) == (0.01, 1.0)
    last = chart.hours[-1]
    assert (last.hour, last.inspected, last.defective) == (datetime(2026, 1, 15, 8, tzinfo=UTC), 40, 5)
    # By chance of 40 at 1 %: P(X > 2) = 0.0075, P(X > 3) = 0.0007
    assert (last.low, last.high, last.out) == (0.0, 3 / 40, "high")
    assert last.log_odds == -3.0  # 5 · 4 − 35 · 4 = −120, of 40
    assert chart.hours[-2].inspected == 0 and chart.hours[-2].high is None
    assert chart.hours[0].hour == datetime(2026, 1, 14, 9, tzinfo=UTC)


@sqlite_only
def test_score_drift_compares_one_version(line):
    hour = 60
    rows = [(n * hour, "good", {"log_odds": -4.0}) for n in range(30, 10, -1) for _ in range(20)]
    rows += [(100, "good", {"log_odds": 9.0, "version": "0"})] * 60
    rows += [(10, "good", {"log_odds": -1.0})] * 60
    line.add(*rows)
    drift = line.status().drift
    assert (drift.now, drift.before, drift.least, drift.towards) == (-1.0, -4.0, 0.0, "defective")


@sqlite_only
def test_a_station_that_stopped_is_reported(line):
    line.add(*((minutes, "good") for minutes in range(300, 60, -5)))
    line.add(*((minutes, "good", {"station": "b"}) for minutes in range(300, 0, -5)))
    quiet = line.status().quiet
    assert [station.station for station in quiet] == ["a"]
    assert quiet[0].last_at == NOW - timedelta(minutes=65)
    # 48 inspections in 4 to 5 hours of the clock
    assert quiet[0].usual_gap_s == 5 * 3600 / 48
    assert line.status("b").quiet == []
