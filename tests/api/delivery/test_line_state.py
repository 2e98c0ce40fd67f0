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
    """A record of inspections and misses."""

    def __init__(self, engine):
        self.engine, self._ids = engine, itertools.count(1)

    def inspect(self, station, label, at, part_id=None):
        record_id = next(self._ids)
        row = make_row(record_id, inspected_at=at, station=station, label=label, part_id=part_id, score=0.5)
        stock(self.engine, [row])
        return record_id

    def miss(self, station, at, part_id=None):
        with write_transaction(self.engine) as connection:
            row = {"missed_at": at, "station": station, "client": "", "status": 422}
            row |= {"code": "truncated_image", "detail": "It ends.", "part_id": part_id}
            connection.execute(insert(tables.misses), row)

    def read(self, state):
        with self.engine.connect() as connection:
            return state.read(connection)


def counts(states):
    return {station: dict(+one.counts) for station, one in states.items()}


def test_the_last_inspection_and_the_counts_of_today(engine):
    day = Day(engine)
    day.inspect("a", "good", NOON - timedelta(days=1))
    day.inspect("b", "scratch", NOON - timedelta(hours=2), "B1")
    day.miss("b", NOON - timedelta(days=2))
    day.miss("b", NOON)
    state = LineStateReader(UTC, lambda: NOON)
    first = day.read(state)
    assert counts(first) == {None: {"defect": 1, "missed": 1}, "a": {}, "b": {"defect": 1, "missed": 1}}
    assert (first["a"].last["label"], first["b"].last["part_id"]) == ("good", "B1")
    assert first[None].last["station"] == "b"
    number = day.inspect("a", "review", NOON)
    day.inspect("", "good", NOON)
    day.miss("c", NOON)
    second = day.read(state)
    today = counts(second)
    assert today[None] == {"defect": 1, "review": 1, "good": 1, "missed": 2}
    assert (today["a"], today["c"]) == ({"review": 1}, {"missed": 1})
    assert (second["a"].last["id"], second[None].last["station"], second["c"].last) == (number, "", None)
    assert second[None].inspected == 3
    assert (second["a"].missed, second["b"].missed["missed_at"]) == (None, NOON)
    assert second[None].missed["station"] == "c"
    day.miss("c", NOON, "C2")
    third = day.read(state)
    assert (third["c"].missed["part_id"], third["b"].missed) == ("C2", second["b"].missed)


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
        day.miss("a", midnight + timedelta(minutes=minutes))
    assert counts(day.read(state))["a"] == {"good": 5, "missed": 5}
    now = midnight + timedelta(hours=1)
    assert counts(day.read(state)) == {None: {"good": 3, "missed": 3}, "a": {"good": 3, "missed": 3}}
    now = midnight + timedelta(days=1)
    assert counts(day.read(state)) == {None: {}, "a": {}}
    assert day.read(state)["a"].missed is None


@sqlite_only
def test_the_number_of_stations_is_bounded(engine, monkeypatch):
    monkeypatch.setattr(line_state, "MAX_STATIONS", 2)
    day, state = Day(engine), LineStateReader(UTC, lambda: NOON)
    day.read(state)
    for station in "abcd":
        day.inspect(station, "good", NOON)
        day.miss(station, NOON)
    day.miss("e", NOON)
    states = day.read(state)
    assert counts(states)[None] == {"good": 4, "missed": 5}
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
