"""Delivery in order for each station, at least once; stations do not block each other."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import event as sql_events
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from api.database.database import write_transaction
from api.delivery.sender import MAX_FAILURES, DeliveryRules
from api.metrics import Metrics
from api.record import outbox_queries as queries
from tests.api.delivery.outbox_messages import FAILED, REFUSED, RULES, UNREACHABLE, FakeSink, Sending
from tests.api.record.databases import sqlite_only


@pytest.fixture
def sink():
    return FakeSink()


async def turn(engine, sink, metrics, rules=RULES):
    async with Sending(engine, sink, metrics, rules) as sending:
        await sending.turn()


def test_events_of_a_station_are_delivered_in_order_and_removed(engine, line, sink, metrics):
    line.inspect(*["a", "b", "", "a", "b", "a"] * 4)
    asyncio.run(turn(engine, sink, metrics))
    for station, count in {"a": 12, "b": 8, "": 4}.items():
        found = sink.taken_of(station)
        assert len(found) == count
        assert found == sorted(found, key=lambda part: int(part.rpartition("-")[2]))
    assert line.left() == []


@sqlite_only
def test_a_blocked_station_keeps_its_order_and_does_not_block_others(engine, line, sink, metrics):
    line.inspect("a", "b", "a", "b")
    sink.failures["a"] = UNREACHABLE

    async def main():
        async with Sending(engine, sink, metrics) as sending:
            await sending.turn()
            assert sink.taken == ["b-2", "b-4"]
            await sending.turn()
            assert sink.tried.count("a-1") == 1, "tried again before its time"
            sending.seconds += 1.0
            await sending.turn()
            assert sink.tried.count("a-1") == 2
            sink.failures.clear()
            sending.seconds += 1.9
            await sending.turn()
            assert sink.taken == ["b-2", "b-4"], "the pause did not double"
            sending.seconds += 0.1
            await sending.turn()

    asyncio.run(main())
    assert sink.taken == ["b-2", "b-4", "a-1", "a-3"]
    assert line.left() == []


def test_a_restart_does_not_change_the_time_of_the_next_attempt(engine, line, sink, metrics):
    line.inspect("a", "b", "a")
    sink.failures["a"] = UNREACHABLE
    due_in_hours = timedelta(hours=9)

    async def main():
        async with Sending(engine, sink, metrics) as sending:
            await sending.turn()
        with write_transaction(engine) as connection:
            queries.save_failure(connection, 3, 0, sending.now + due_in_hours, "unreachable")
        async with Sending(engine, sink, Metrics(lambda: 0, lambda: True)) as restarted:
            restarted.now = sending.now
            await restarted.turn()
            assert sorted(sink.tried) == ["a-1", "b-2"]
            sink.failures.clear()
            restarted.now += timedelta(seconds=1)  # the delay after the first failure
            await restarted.turn()
            await restarted.turn()
            assert sink.taken == ["b-2", "a-1"]
            restarted.now += due_in_hours
            await restarted.turn()

    asyncio.run(main())
    assert sink.taken == ["b-2", "a-1", "a-3"]


@sqlite_only
def test_a_time_of_a_clock_that_was_wrong_is_ignored(engine, line, sink, metrics):
    line.inspect("a")

    async def main():
        async with Sending(engine, sink, metrics) as sending:
            with write_transaction(engine) as connection:
                queries.save_failure(connection, 1, 0, sending.now + 2 * RULES.max_age, "unreachable")
            await sending.turn()

    asyncio.run(main())
    assert sink.taken == ["a-1"]


ATTEMPTS = [(REFUSED, 1), (FAILED, MAX_FAILURES), (ValueError("a fault of ours"), MAX_FAILURES)]


@sqlite_only
@pytest.mark.parametrize(("failure", "attempts"), ATTEMPTS)
def test_an_event_becomes_a_dead_letter(engine, line, sink, metrics, failure, attempts):
    line.inspect("a", "a")
    sink.failures["a-1"] = failure

    async def main():
        async with Sending(engine, sink, metrics) as sending:
            for _ in range(attempts):
                assert line.left("dead") == []
                await sending.turn()
                sending.seconds += 60

    asyncio.run(main())
    assert sink.tried.count("a-1") == attempts
    assert (sink.taken, line.left("dead")) == (["a-2"], ["a-1"])


def test_events_wait_for_an_unreachable_receiver_up_to_their_maximum_age(engine, line, sink, metrics):
    line.inspect("a", "a")
    sink.failures["a"] = UNREACHABLE

    async def main():
        async with Sending(engine, sink, metrics) as sending:
            for _ in range(MAX_FAILURES + 2):
                await sending.turn()
                sending.seconds += 60
            assert line.left() == ["a-1", "a-2"]
            sending.now += RULES.max_age
            await sending.turn()
            assert line.left("dead") == ["a-1", "a-2"]
            sink.failures.clear()
            line.inspect("a")
            sending.seconds += 60
            await sending.turn()

    asyncio.run(main())
    assert sink.taken == ["a-3"]


def test_a_full_outbox_drops_dead_letters_first_then_the_oldest_events(engine, line, sink, metrics):
    line.inspect(*"aaaaaa")
    with write_transaction(engine) as connection:
        connection.execute(text("UPDATE outbox SET state = 'dead' WHERE id IN (3, 4)"))
    sink.failures["a"] = UNREACHABLE
    asyncio.run(turn(engine, sink, metrics, DeliveryRules(timedelta(days=1), max_messages=3)))
    assert line.left("dead") == []
    assert line.left() == ["a-2", "a-5", "a-6"]
    assert b'segdec_outbox_dropped_total{sink="fake"} 3.0' in metrics.render()[0]
    with engine.connect() as connection:
        assert connection.execute(text("SELECT what FROM audit")).scalars().all() == ["drop events"] * 2


@sqlite_only
def test_events_that_were_sent_but_not_removed_are_sent_again_after_a_kill(engine, line, sink, metrics):
    line.inspect("a", "b", "a", "b")

    async def killed():
        sending = Sending(engine, sink, metrics)
        await sending.sender.start_deliveries()
        sending.sender._store.delete_delivered = asyncio.Event().wait
        async with asyncio.timeout(60):
            while len(sink.taken) < 4:
                await asyncio.sleep(0)

    asyncio.run(killed())
    assert line.left() == ["a-1", "b-2", "a-3", "b-4"]
    line.inspect("a")
    asyncio.run(turn(engine, sink, Metrics(lambda: 0, lambda: True)))
    assert sink.taken_of("a") == ["a-1", "a-3", "a-1", "a-3", "a-5"]
    assert sink.taken_of("b") == ["b-2", "b-4", "b-2", "b-4"]
    assert line.left() == []


@sqlite_only
def test_an_event_that_cannot_be_removed_is_sent_once(engine, line, sink, metrics):
    refuse = True

    @sql_events.listens_for(engine, "before_cursor_execute")
    def fail(_connection, _cursor, statement, *_):
        if refuse and statement.startswith("DELETE"):
            raise OperationalError(statement, None, Exception("database or disk is full"))

    line.inspect("a", "a")

    async def main():
        nonlocal refuse
        async with Sending(engine, sink, metrics) as sending:
            await sending.turn()
            for _ in range(3):
                with pytest.raises(OperationalError):
                    await sending.turn()
            refuse = False
            sending.seconds += 60
            await sending.turn()

    asyncio.run(main())
    assert sink.taken == ["a-1", "a-2"]
    assert line.left() == []


@sqlite_only
def test_the_sender_survives_an_unexpected_error(engine, line, sink, metrics, monkeypatch):
    line.inspect("a")
    monkeypatch.setattr("api.delivery.sender.POLL_S", 0.01)
    waiting_stations = queries.waiting_stations

    def fail_once(*_):
        monkeypatch.setattr(queries, "waiting_stations", waiting_stations)
        raise ValueError("a fault of ours")

    monkeypatch.setattr(queries, "waiting_stations", fail_once)

    async def main():
        sending, stopping = Sending(engine, sink, metrics), asyncio.Event()
        running = asyncio.create_task(sending.sender.run(stopping, 20.0))
        while not sink.taken and not running.done():
            await asyncio.sleep(0.01)
        stopping.set()
        await running

    asyncio.run(main())
    assert sink.taken == ["a-1"] and line.left() == []


def test_messages_are_known_of_their_inspection(engine, line, sink, metrics):
    line.inspect("a", "b", "c")
    sink.failures = {"b": REFUSED, "c": UNREACHABLE}
    asyncio.run(turn(engine, sink, metrics))
    with engine.connect() as connection:
        found = [queries.messages_of(connection, number) for number in (1, 2, 3, 4)]
    assert [[(it.sink, it.kind, it.state, it.error) for it in each] for each in found] == [
        [("fake", "inspected", "delivered", None)],
        [("fake", "inspected", "dead", "HTTP 400 Bad Request")],
        [("fake", "inspected", "waiting", "connection refused")],
        [],
    ]
    assert found[0][0].delivered_at is not None
