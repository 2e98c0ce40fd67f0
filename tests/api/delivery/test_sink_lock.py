"""Who sends, where several services share a record."""

import pytest
from sqlalchemy import text

from api.delivery.sink_lock import SinkLock
from api.records.database import open_database


@pytest.fixture
def leases(make_database):
    url = make_database()
    engines = [open_database(url) for _ in range(2)]
    made = [SinkLock(engine, "webhook") for engine in engines]
    yield made
    for lock, engine in zip(made, engines, strict=True):
        lock.release()
        engine.dispose()


def test_one_has_it_until_it_lets_go(leases):
    first, second = leases
    assert [first.acquire(), second.acquire(), first.acquire()] == [True, False, True]
    first.release()
    assert [second.acquire(), first.acquire()] == [True, False]


def test_it_is_lost_with_its_connection_and_taken_by_the_next(leases):
    first, second = leases
    assert first.acquire()
    with second._engine.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks "
                "WHERE locktype = 'advisory' AND database = "
                "(SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )
    assert second.acquire()
    with pytest.raises(Exception, match=r"terminat|closed|lost"):
        first.acquire()
    assert not first.acquire()
