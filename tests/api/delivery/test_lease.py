"""Who sends, where several services share a record."""

import pytest
from sqlalchemy import text

from api.delivery.lease import Lease
from api.records.database import open_database


@pytest.fixture
def leases(make_database):
    url = make_database()
    engines = [open_database(url) for _ in range(2)]
    made = [Lease(engine, "webhook") for engine in engines]
    yield made
    for lease, engine in zip(made, engines, strict=True):
        lease.release()
        engine.dispose()


def test_one_has_it_until_it_lets_go(leases):
    first, second = leases
    assert [first.hold(), second.hold(), first.hold()] == [True, False, True]
    first.release()
    assert [second.hold(), first.hold()] == [True, False]


def test_each_sink_has_its_own(leases):
    assert leases[0].hold()
    other = Lease(leases[1]._engine, "mqtt")
    assert other.hold()
    other.release()


def test_it_is_lost_with_its_connection_and_taken_by_the_next(leases):
    first, second = leases
    assert first.hold()
    with second._engine.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks "
                "WHERE locktype = 'advisory' AND database = "
                "(SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )
    assert second.hold()
    with pytest.raises(Exception, match=r"terminat|closed|lost"):
        first.hold()
    assert not first.hold()


def test_sqlite_is_for_one_service(tmp_path):
    engine = open_database(f"sqlite:///{tmp_path}/record.db")
    assert Lease(engine, "webhook").hold()
    engine.dispose()
