"""The lock of a sink that several services share."""

import time

import pytest
from sqlalchemy import text

from api.database.database import open_database
from api.delivery.sink_lock import SinkLock


@pytest.fixture
def locks(make_database):
    url = make_database()
    engines = [open_database(url) for _ in range(2)]
    made = [SinkLock(engine, "webhook") for engine in engines]
    yield made
    for lock, engine in zip(made, engines, strict=True):
        lock.release()
        engine.dispose()


def test_one_service_holds_the_lock_until_it_releases_it(locks):
    first, second = locks
    assert [first.acquire(), second.acquire(), first.acquire()] == [True, False, True]
    first.release()
    while not second.acquire():  # PostgreSQL ends the session some time after the connection was closed
        time.sleep(0.01)
    assert not first.acquire()


def test_the_lock_is_lost_with_its_connection(locks):
    first, second = locks
    assert first.acquire()
    end = (
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with second._engine.connect() as connection:
        connection.execute(text(end))
    assert second.acquire()
    with pytest.raises(Exception, match=r"terminat|closed|lost"):
        first.acquire()
    assert not first.acquire()
