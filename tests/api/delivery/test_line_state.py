"""The state of the line, read from both databases."""

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import insert

from api.database.database import write_transaction
from api.delivery import line_state
from api.delivery.line_state import LineStateReader
from api.record import tables
from tests.api.record.databases import sqlite_only
from tests.api.record.filled_record import make_row, stock

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


class Day:
    """A record of inspections and uninspected photographs."""

    def __init__(self, engine):
        self.engine, self._ids = engine, itertools.count(1)

    def inspect(self, station, label, at, part_id=None):
        record_id = next(self._ids)
        row = make_row(record_id, inspected_at=at, station=station, label=label, part_id=part_id, score=0.5)
        stock(self.engine, [row])
        return record_id

    def leave_out(self, station, at, part_id=None):
        with write_transaction(self.engine) as connection:
            row = {"at": at, "station": station, "client": "", "status": 422}
            row |= {"code": "truncated_image", "detail": "It ends.", "part_id": part_id}
            connection.execute(insert(tables.uninspected), row)

    def read(self, state):
        with self.engine.connect() as connection:
            return state.read(connection)


def counts(states):
    return {station: dict(+one.counts) for station, one in states.items()}


def test_the_last_inspection_and_the_counts_of_today(engine):
    day = Day(engine)
    day.inspect("a", "good", NOON - timedelta(days=1))
    day.inspect("b", "scratch", NOON - timedelta(hours=2), "B1")
    day.leave_out("b", NOON - timedelta(days=2))
    day.leave_out("b", NOON)
    state = LineStateReader(UTC, lambda: NOON)
    first = day.read(state)
    assert counts(first) == {
        None: {"defect": 1, "uninspected": 1},
        "a": {},
        "b": {"defect": 1, "uninspected": 1},
    }
    assert (first["a"].last["label"], first["b"].last["part_id"]) == ("good", "B1")
    assert first[None].last["station"] == "b"
    number = day.inspect("a", "review", NOON)
    day.inspect("", "good", NOON)
    day.leave_out("c", NOON)
    second = day.read(state)
    today = counts(second)
    assert today[None] == {"defect": 1, "review": 1, "good": 1, "uninspected": 2}
    assert (today["a"], today["c"]) == ({"review": 1}, {"uninspected": 1})
    assert (second["a"].last["id"], second[None].last["station"], second["c"].last) == (number, "", None)
    assert second[None].inspected == 3
    assert (second["a"].uninspected, second["b"].uninspected["at"]) == (None, NOON)
    assert second[None].uninspected["station"] == "c"
    day.leave_out("c", NOON, "C2")
    third = day.read(state)
    assert (third["c"].uninspected["part_id"], third["b"].uninspected) == ("C2", second["b"].uninspected)


def test_a_photograph_kept_for_review_is_not_the_last_inspection(engine):
    day, state = Day(engine), LineStateReader(UTC, lambda: NOON)
    number = day.inspect("a", "good", NOON)
    day.inspect("a", "not_inspected", NOON)
    for reader in (state, state, LineStateReader(UTC, lambda: NOON)):
        states = day.read(reader)
        assert (states["a"].last["id"], states[None].last["id"]) == (number, number)
        assert counts(states) == {None: {"good": 1}, "a": {"good": 1}}
        day.inspect("a", "not_inspected", NOON)


def test_a_day_begins_at_midnight_of_its_zone(engine):
    """In India midnight is at half past an hour of UTC, by which the record counts."""
    day, zone = Day(engine), ZoneInfo("Asia/Kolkata")
    midnight = datetime(2026, 3, 10, tzinfo=zone)
    now = midnight + timedelta(minutes=-1)
    state = LineStateReader(zone, lambda: now)
    for minutes in (-20, -1, 1, 20, 40):
        day.inspect("a", "good", midnight + timedelta(minutes=minutes))
        day.leave_out("a", midnight + timedelta(minutes=minutes))
    assert counts(day.read(state))["a"] == {"good": 5, "uninspected": 5}
    now = midnight + timedelta(hours=1)
    assert counts(day.read(state)) == {
        None: {"good": 3, "uninspected": 3},
        "a": {"good": 3, "uninspected": 3},
    }
    now = midnight + timedelta(days=1)
    assert counts(day.read(state)) == {None: {}, "a": {}}
    assert day.read(state)["a"].uninspected is None


@sqlite_only
def test_the_number_of_stations_is_bounded(engine, monkeypatch):
    monkeypatch.setattr(line_state, "MAX_STATIONS", 2)
    day, state = Day(engine), LineStateReader(UTC, lambda: NOON)
    day.read(state)
    for station in "abcd":
        day.inspect(station, "good", NOON)
        day.leave_out(station, NOON)
    day.leave_out("e", NOON)
    states = day.read(state)
    assert counts(states)[None] == {"good": 4, "uninspected": 5}
    assert set(states) == {None, "a", "b"}
    assert set(day.read(LineStateReader(UTC, lambda: NOON))) == {None, "c", "d"}  # the newest


@sqlite_only
def test_new_inspections_are_read_in_pages(engine, monkeypatch):
    monkeypatch.setattr(line_state, "PAGE_SIZE", 2)
    day, state = Day(engine), LineStateReader(UTC, lambda: NOON)
    day.read(state)
    numbers = [day.inspect(station, "good", NOON) for station in "abcab"]
    states = day.read(state)
    last = [states[station].last["id"] for station in (None, "a", "b", "c")]
    assert last == [numbers[n] for n in (4, 3, 4, 2)]
