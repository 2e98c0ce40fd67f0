"""How a line does, from rows made by hand; on SQLite and PostgreSQL."""

import asyncio
import itertools
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import event

from api.metrics import Metrics
from api.records.database import writing
from api.records.line.line_status import LineMonitor
from api.records.line.shifts import ShiftPlan
from api.records.line.uninspected_photograph import UninspectedPhotograph
from api.records.outbox import Outbox
from api.records.queries import upsert_pictures
from api.records.record import Record
from api.records.record_metrics import RecordMetrics
from api.records.storage.retention import RetentionRules
from api.records.writer import add_rows
from tests.api.records.databases import sqlite_only
from tests.api.records.filled_record import make_row

NOW = datetime(2026, 1, 15, 8, 20, tzinfo=UTC)
"""Twenty past nine in Berlin."""
PICTURE = bytes(32)
OUTBOX = Outbox(())


class Past:
    """A record of inspections that were made at any time."""

    def __init__(self, url, folder):
        metrics = RecordMetrics(Metrics(lambda: 0, lambda: True))
        self.record = Record(url, folder, RetentionRules({}, None, 0.0), 1, metrics, OUTBOX)
        asyncio.run(self.record.open())
        self.line = LineMonitor(
            self.record, ShiftPlan([time(6, 30), time(14, 30)], ZoneInfo("Europe/Berlin"))
        )
        self._numbers = itertools.count(1)
        self._engine = self.record._engine
        row = {"sha256": PICTURE, "bytes": 1, "format": "png", "state": "kept", "worth": 0, "stored_at": NOW}
        with writing(self._engine) as connection:
            upsert_pictures(connection, [row])

    def add(self, *inspections):
        """Keeps (minutes before now, label) and what else is said of each, in their order."""
        with writing(self._engine) as connection:
            add_rows(connection, [self._row(*one) for one in inspections], OUTBOX)

    def _row(self, minutes, label, more=None):
        number = next(self._numbers)
        return {
            **make_row(number, inspected_at=NOW - timedelta(minutes=minutes), station="a", picture=PICTURE),
            **{"part_id": f"part {number}", "label": label, "score": 0.1 if label == "good" else 0.9},
            **{"log_odds": -4.0 if label == "good" else 4.0, "draw": 1.0, "draw_probability": 0.0},
            **(more or {}),
        }

    def miss(self, minutes, station="a", part_id="x", count=1):
        """Notes what was not inspected."""
        missed_at = NOW - timedelta(minutes=minutes)
        miss = UninspectedPhotograph(
            station, part_id, "", 422, "truncated_image", "It ends too early.", missed_at, count
        )
        self.record.misses.add(miss)

    def status(self, station=None, now=NOW):
        """What the screen is told."""
        return asyncio.run(self.line.status(station, now))


@pytest.fixture
def past(database_url, tmp_path):
    past = Past(database_url, tmp_path / "record")
    yield past
    past.record.close()


@sqlite_only
def test_a_record_that_is_empty(past):
    status = past.status()
    assert status.last is None and status.misses == status.defects == status.quiet == status.stations == []
    assert (status.shift.inspected, status.day.not_inspected) == (0, 0)
    assert status.shift.begin == datetime(2026, 1, 15, 5, 30, tzinfo=UTC)
    assert status.day.begin == datetime(2026, 1, 14, 23, tzinfo=UTC)
    assert status.chart.centre is status.drift is status.unavailable is None
    assert len(status.chart.hours) == 24 and not any(hour.inspected for hour in status.chart.hours)


@sqlite_only
@pytest.mark.parametrize(("label", "verdict"), [("good", "good"), ("review", "review"), ("dent", "defect")])
def test_the_last_verdict(past, label, verdict):
    past.add((3, "dent"), (2, label), (1, "good", {"station": "b"}))
    last = past.status("a").last
    assert (last.record_id, last.part_id, last.verdict, last.label) == (2, "part 2", verdict, label)
    assert last.inspected_at == NOW - timedelta(minutes=2)
    assert past.status().last.station == "b"
    assert past.status("c").last is None
    assert past.status().stations == ["a", "b"]


def test_counts_begin_with_the_minute_of_the_shift(past):
    # The shift began 170 minutes ago, at half past, the day 560 minutes ago.
    past.add((561, "good"), (560, "dent"), (200, "review"), (171, "good"), (170, "good"), (169, "dent"))
    past.add((60, "good"), (10, "crack"), (5, "dent"), (1, "review", {"station": "b"}))
    for _ in range(1):
        shift, day = past.status().shift, past.status().day
        assert (shift.inspected, shift.good, shift.review, shift.defective) == (
            6,
            2,
            1,
            {"crack": 1, "dent": 2},
        )
        assert (day.inspected, day.good, day.review, day.defective) == (9, 3, 2, {"crack": 1, "dent": 3})
        assert past.status("b").shift.inspected == 1


@sqlite_only
def test_a_miss_stands_until_its_station_inspects_again(past):
    past.add((9, "good"), (8, "good", {"station": "b"}))
    past.miss(5, part_id="lost")
    past.add((4, "good", {"station": "b"}))
    for station in (None, "a"):
        status = past.status(station)
        assert [(miss.station, miss.part_id, miss.followed) for miss in status.misses] == [
            ("a", "lost", False)
        ]
        assert status.shift.not_inspected == status.day.not_inspected == 1
    assert past.status("b").misses == [] and past.status("b").shift.not_inspected == 0
    past.add((3, "dent"))
    assert past.status().misses[0].followed
    assert past.status().shift.not_inspected == 1


@sqlite_only
def test_a_miss_of_no_known_station_may_be_of_any(past):
    past.add((9, "good"), (8, "good", {"station": "b"}))
    past.miss(5, station="")
    past.add((4, "good", {"station": "b"}))
    assert not past.status("a").misses[0].followed
    assert past.status("b").misses[0].followed and past.status().misses[0].followed


def test_misses_of_rows_and_of_memory_are_told_together(past):
    past.miss(100, part_id="old")
    past.miss(90, station="b", part_id="its own")
    past.miss(300, station="c", part_id="of the shift before")
    past.miss(170 + 12 * 60 + 1, station="d", part_id="of yesterday")
    past.record.misses.write()
    past.miss(1, part_id="new", count=3)
    status = past.status()
    assert [(miss.station, miss.part_id) for miss in status.misses] == [
        ("a", "new"),
        ("b", "its own"),
        ("c", "of the shift before"),
    ]
    assert (status.shift.not_inspected, status.day.not_inspected) == (5, 6)


@sqlite_only
def test_what_is_missed_is_told_while_the_database_cannot_be_read(past):
    past.add((9, "good"))

    @event.listens_for(past.record._engine, "begin", insert=True)
    def fail(_):
        raise OSError("gone")

    past.miss(1, part_id="lost")
    status = past.status()
    assert status.unavailable.startswith("The record cannot be used now")
    assert [miss.part_id for miss in status.misses] == ["lost"] and not status.misses[0].followed
    assert status.last is status.shift is status.chart is None


def test_the_last_defects_of_the_week(past):
    day = 24 * 60
    past.add((9 * day, "dent"), *((100 - n, "dent", {"station": "b"}) for n in range(5)), (50, "review"))
    past.add(*((40 - n, "dent" if n % 2 else "crack") for n in range(20)), (1, "good"))
    assert [defect.record_id for defect in past.status().defects] == [*range(27, 19, -1)]
    assert [defect.record_id for defect in past.status("b").defects] == [6, 5, 4, 3, 2]
    assert {defect.verdict for defect in past.status().defects} == {"defect"}


@sqlite_only
def test_the_chart_compares_the_day_with_the_week_before(past):
    hour = 60
    before = [(30 * hour, "dent" if n < 2 else "good") for n in range(200)]  # 1 %
    now = [(1, "dent" if n < 5 else "good") for n in range(40)]
    past.add(*before, *now)
    chart = past.status().chart
    assert (chart.centre, chart.spread) == (0.01, 1.0)
    last = chart.hours[-1]
    assert (last.hour, last.inspected, last.defective) == (datetime(2026, 1, 15, 8, tzinfo=UTC), 40, 5)
    # By chance of 40 at 1 %: P(X > 2) = 0.0075, P(X > 3) = 0.0007
    assert (last.low, last.high, last.out) == (0.0, 3 / 40, "high")
    assert last.log_odds == -3.0  # 5 · 4 − 35 · 4 = −120, of 40
    assert chart.hours[-2].inspected == 0 and chart.hours[-2].high is None
    assert chart.hours[0].hour == datetime(2026, 1, 14, 9, tzinfo=UTC)


@sqlite_only
def test_scores_are_compared_within_one_version(past):
    hour = 60
    rows = [(n * hour, "good", {"log_odds": -4.0}) for n in range(30, 10, -1) for _ in range(20)]
    rows += [(100, "good", {"log_odds": 9.0, "version": "0"})] * 60
    rows += [(10, "good", {"log_odds": -1.0})] * 60
    past.add(*rows)
    drift = past.status().drift
    assert (drift.now, drift.before, drift.least, drift.towards) == (-1.0, -4.0, 0.0, "defective")


@sqlite_only
def test_a_station_that_went_quiet(past):
    past.add(*((minutes, "good") for minutes in range(300, 60, -5)))
    past.add(*((minutes, "good", {"station": "b"}) for minutes in range(300, 0, -5)))
    quiet = past.status().quiet
    assert [station.station for station in quiet] == ["a"]
    assert quiet[0].last_at == NOW - timedelta(minutes=65)
    # 48 inspections in 4 to 5 hours of the clock
    assert quiet[0].usual_gap_s == 5 * 3600 / 48
    assert past.status("b").quiet == []


@pytest.mark.parametrize("station", [None, "a"])
def test_no_table_is_read_through(tmp_path, station):
    past = Past(f"sqlite:///{tmp_path}/record.db", tmp_path / "record")
    past.add((900, "dent"), (170, "good"), (1, "good"))
    past.miss(5), past.record.misses.write()
    asked = []

    @event.listens_for(past.record._engine, "before_cursor_execute")
    def note(_, __, statement, parameters, *___):
        asked.append((statement, parameters))

    past.status(station)
    with past.record._engine.connect() as connection:
        plans = {
            statement: [
                row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            ]
            for statement, parameters in asked
            if statement.startswith("SELECT")
        }
    past.record.close()
    read_through = [statement for statement, plan in plans.items() if any("SCAN" in step for step in plan)]
    # The newest inspection of all: from the end of the table, one row.
    newest = [
        one
        for one in plans
        if one.endswith("FROM inspections ORDER BY inspections.id DESC\n LIMIT ? OFFSET ?")
    ]
    assert len(plans) >= 10 and set(read_through) <= set(newest)
