"""The database's own promises, on SQLite and PostgreSQL."""

from datetime import UTC, datetime

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError

from api.records import tables
from api.records.database import migrate, migrations, open_database, revision_of, writing
from segdec.errors import ConfigError

REVISIONS = ["0001", "0002"]


@pytest.fixture
def engine(database_url):
    engine = open_database(database_url)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("revision", [None, *REVISIONS])
def test_tables_of_each_earlier_form_become_those_of_today(engine, revision):
    if revision is not None:
        with writing(engine) as connection:
            config = migrations()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    migrate(engine)
    migrate(engine)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []
        assert revision_of(connection) == REVISIONS[-1]


def test_hours_that_were_counted_before_are_kept(engine):
    counts = {"count": 3, "log_odds_sum": -6.5, "log_odds_squares": 15.25, "first_id": 1, "last_id": 4}
    names = {"station": "s", "model": "m", "version": "1", "label": "good"}
    hour = {"hour": datetime(2026, 1, 1, tzinfo=UTC), **names, **counts}
    with writing(engine) as connection:
        config = migrations()
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(insert(tables.hours), hour)
    migrate(engine)
    with engine.connect() as connection:
        assert connection.execute(select(tables.hours)).mappings().one() == hour


def test_a_newer_form_is_left_alone(engine):
    migrate(engine)
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(
        ConfigError, match=r"has schema 9999, which this version does not know. Expected 0002"
    ):
        migrate(engine)


@pytest.mark.parametrize("change", ["UPDATE audit SET who = 'b'", "DELETE FROM audit"])
def test_the_audit_is_added_to_and_never_changed(engine, change):
    migrate(engine)
    line = {"at": datetime.now(UTC), "who": "a", "what": "review"}
    with writing(engine) as connection:
        connection.execute(insert(tables.audit), line)
    with pytest.raises(DBAPIError, match="added and never changed"), writing(engine) as connection:
        connection.execute(text(change))


@pytest.mark.parametrize(
    "url", ["mysql://root@host/db", "nonsense", "sqlite://", "postgresql://u:secret@host:x/db"]
)
def test_a_url_of_no_database_is_refused_without_its_password(url):
    with pytest.raises(ConfigError, match=r"Expected\s+sqlite:///FILE") as refusal:
        open_database(url)
    assert "secret" not in str(refusal.value)
