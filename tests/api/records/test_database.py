"""Schema and constraints of the database, on SQLite and PostgreSQL."""

from datetime import UTC, datetime

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, text
from sqlalchemy.exc import DBAPIError

from api.records import tables
from api.records.database import migrate, open_database, write_transaction
from segdec.errors import ConfigError


def test_migrations_create_the_tables_of_the_metadata(engine):
    migrate(engine)  # the fixture has migrated it already
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []


def test_a_newer_schema_is_rejected(engine):
    with write_transaction(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(
        ConfigError, match=r"has schema 9999, which this version does not know. Expected 0002"
    ):
        migrate(engine)


@pytest.mark.parametrize("change", ["UPDATE audit SET who = 'b'", "DELETE FROM audit"])
def test_the_audit_log_is_append_only(engine, change):
    line = {"at": datetime.now(UTC), "who": "a", "what": "review"}
    with write_transaction(engine) as connection:
        connection.execute(insert(tables.audit), line)
    with pytest.raises(DBAPIError, match="append-only"), write_transaction(engine) as connection:
        connection.execute(text(change))


@pytest.mark.parametrize(
    "url", ["mysql://root@host/db", "nonsense", "sqlite://", "postgresql://u:secret@host:x/db"]
)
def test_an_invalid_url_is_rejected_without_its_password(url):
    with pytest.raises(ConfigError, match=r"Expected\s+sqlite:///FILE") as refusal:
        open_database(url)
    assert "secret" not in str(refusal.value)
