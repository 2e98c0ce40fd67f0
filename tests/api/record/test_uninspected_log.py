"""Photographs that were not inspected: in memory at once, then in a bounded number of rows."""

import threading
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from api.database.database import write_transaction
from api.record import uninspected_log
from api.record.tables import uninspected
from api.record.uninspected_log import UninspectedLog
from api.record.uninspected_photograph import UninspectedPhotograph
from tests.api.record.databases import sqlite_only

BEGUN = datetime(2026, 1, 15, 8, tzinfo=UTC)


@pytest.fixture
def clock():
    return Mock(return_value=0.0)


@pytest.fixture
def log(engine, clock, monkeypatch):
    """Writes up to 5 rows at once, and one more every 5 s."""
    monkeypatch.setattr(uninspected_log, "BURST", 5)
    return UninspectedLog(engine, clock)


def photograph(number, station="a"):
    at = BEGUN + timedelta(seconds=number)
    return UninspectedPhotograph(station, f"part {number}", "", 422, "truncated_image", "It ends.", at)


def rows(engine):
    columns = (uninspected.c.station, uninspected.c.part_id, uninspected.c.count)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(*columns).order_by(uninspected.c.id))]


def unwritten(log):
    with log.unwritten() as known:
        return [(one.station, one.part_id, one.count) for one in known]


def test_an_uninspected_photograph_is_in_memory_until_it_is_written(log, engine):
    for number in range(3):
        log.add(photograph(number))
    expected = [("a", f"part {number}", 1) for number in range(3)]
    assert unwritten(log) == expected and rows(engine) == []
    log.write()
    assert unwritten(log) == [] and rows(engine) == expected


@sqlite_only
def test_many_photographs_of_a_station_share_a_row(log, engine, clock):
    for number in range(100):
        log.add(photograph(number))
    log.add(photograph(100, "b"))
    log.write()
    assert rows(engine) == [("a", f"part {number}", 1) for number in range(5)]
    assert unwritten(log) == [("a", "part 99", 95), ("b", "part 100", 1)]
    for seconds, count in ((0, 5), (5, 6), (3600, 7)):
        clock.return_value += seconds
        log.write()
        assert len(rows(engine)) == count
    assert rows(engine)[5:] == [("a", "part 99", 95), ("b", "part 100", 1)]


@sqlite_only
def test_photographs_in_memory_are_bounded(log, monkeypatch):
    monkeypatch.setattr(uninspected_log, "MAX_WAITING", 10)
    for number in range(100):
        log.add(photograph(number, station=f"station {number}"))
    known = unwritten(log)
    assert len(known) == 11 and sum(count for *_, count in known) == 100
    assert known[-1] == ("", "part 99", 90)


@sqlite_only
def test_photographs_wait_for_a_failing_database(log, engine, monkeypatch):
    def come_and_fail(_):
        for number in (2, 3, 4):
            log.add(photograph(number))
        raise SQLAlchemyError("gone")

    log._rows = 1.0
    log.add(photograph(0)), log.add(photograph(1))  # the second one is in the group that shares a row
    log._rows = 2.0
    with monkeypatch.context() as broken:
        broken.setattr(uninspected_log, "write_transaction", come_and_fail)
        with pytest.raises(SQLAlchemyError):
            log.write()
    expected = [("a", "part 0", 1), ("a", "part 4", 4)]
    assert unwritten(log) == expected
    log.write()
    assert unwritten(log) == [] and rows(engine) == expected


@sqlite_only
def test_the_oldest_rows_are_deleted(log, engine, monkeypatch):
    monkeypatch.setattr(uninspected_log, "MAX_ROWS", 3)
    for number in range(5):
        log.add(photograph(number))
    log.write()
    assert [part for _, part, _ in rows(engine)] == ["part 2", "part 3", "part 4"]


@sqlite_only
def test_the_writer_survives_an_unexpected_error(log, engine, monkeypatch):
    failed = threading.Event()

    def fail_once(engine):
        if not failed.is_set():
            failed.set()
            raise ValueError("a fault of ours")
        return write_transaction(engine)

    monkeypatch.setattr(uninspected_log, "write_transaction", fail_once)
    monkeypatch.setattr(uninspected_log, "RETRY_S", 0.0)
    log.start()
    log.add(photograph(0))
    assert failed.wait(20)
    while unwritten(log):
        threading.Event().wait(0.01)
    log.close()
    assert rows(engine) == [("a", "part 0", 1)]
