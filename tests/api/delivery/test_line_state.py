"""What the record says of the line, on both databases."""

import uuid
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import insert

from api.delivery import line_state
from api.delivery.line_state import LineState
from api.records import tables
from api.records.database import writing
from api.records.outbox import Outbox
from api.records.writer import add_rows
from tests.api.records.filled_record import make_row

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
SHA = b"s" * 32


class Day:
    """A record of inspections and misses."""

    def __init__(self, engine):
        self.engine = engine
        picture = {"sha256": SHA, "bytes": 1, "format": "png", "state": "kept", "worth": 0, "stored_at": NOON}
        with writing(engine) as connection:
            connection.execute(insert(tables.pictures), picture)

    def inspect(self, station, label, at, part_id=None):
        token = uuid.uuid4().bytes
        row = make_row(0, token=token, picture=SHA, part_id=part_id, station=station, label=label, score=0.5)
        with writing(self.engine) as connection:
            (stored,) = add_rows(connection, [{**row, "inspected_at": at}], Outbox())
        return stored.record_id

    def miss(self, station, at):
        with writing(self.engine) as connection:
            row = {
                "missed_at": at,
                "station": station,
                "client": "",
                "status": 422,
                "code": "c",
                "detail": "d",
            }
            connection.execute(insert(tables.misses), row)

    def read(self, state):
        with self.engine.connect() as connection:
            return state.read(connection)


def counts(states):
    return {station: dict(+one.counts) for station, one in states.items()}


def test_the_latest_and_what_today_had(each_engine):
    day = Day(each_engine)
    day.inspect("a", "good", NOON - timedelta(days=1))
    day.inspect("b", "scratch", NOON - timedelta(hours=2), "B1")
    day.miss("b", NOON - timedelta(days=2))
    day.miss("b", NOON)
    state = LineState(UTC, lambda: NOON)
    first = day.read(state)
    assert counts(first) == {None: {"defect": 1, "missed": 1}, "a": {}, "b": {"defect": 1, "missed": 1}}
    assert (first["a"].last["label"], first["b"].last["part_id"]) == ("good", "B1")
    assert first[None].last["station"] == "b"
    number = day.inspect("a", "review", NOON)
    day.inspect("", "good", NOON)
    day.miss("c", NOON)
    second = day.read(state)
    assert counts(second)[None] == {"defect": 1, "review": 1, "good": 1, "missed": 2}
    assert counts(second)["a"] == {"review": 1}
    assert counts(second)["c"] == {"missed": 1}
    assert (second["a"].last["id"], second[None].last["station"], second["c"].last) == (number, "", None)
    assert second[None].inspected == 3


def test_a_day_begins_at_midnight_of_its_zone(each_engine):
    """In India midnight is at half past an hour of UTC, by which the record counts."""
    day, zone = Day(each_engine), ZoneInfo("Asia/Kolkata")
    midnight = datetime(2026, 3, 10, tzinfo=zone)
    now = midnight + timedelta(minutes=-1)
    state = LineState(zone, lambda: now)
    for minutes in (-20, -1, 1, 20, 40):
        day.inspect("a", "good", midnight + timedelta(minutes=minutes))
        day.miss("a", midnight + timedelta(minutes=minutes))
    assert counts(day.read(state))["a"] == {"good": 5, "missed": 5}
    now = midnight + timedelta(hours=1)
    assert counts(day.read(state)) == {None: {"good": 3, "missed": 3}, "a": {"good": 3, "missed": 3}}
    now = midnight + timedelta(days=1)
    assert counts(day.read(state)) == {None: {}, "a": {}}


def test_stations_have_an_end(engine, monkeypatch):
    monkeypatch.setattr(line_state, "MAX_STATIONS", 2)
    day, state = Day(engine), LineState(UTC, lambda: NOON)
    day.read(state)
    for station in "abcd":
        day.inspect(station, "good", NOON)
        day.miss(station, NOON)
    day.miss("e", NOON)
    states = day.read(state)
    assert counts(states)[None] == {"good": 4, "missed": 5}
    assert set(states) == {None, "a", "b"}


@pytest.mark.parametrize("page", [2])
def test_more_than_a_page_came(engine, monkeypatch, page):
    monkeypatch.setattr(line_state, "PAGE_SIZE", page)
    day, state = Day(engine), LineState(UTC, lambda: NOON)
    day.read(state)
    numbers = [day.inspect(station, "good", NOON) for station in "abcab"]
    states = day.read(state)
    assert [states[station].last["id"] for station in (None, "a", "b", "c")] == [
        numbers[n] for n in (4, 3, 4, 2)
    ]
