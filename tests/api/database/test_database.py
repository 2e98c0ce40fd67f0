"""Schema and constraints of the database, on SQLite and PostgreSQL."""

import hashlib
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest
from sqlalchemy import create_mock_engine, insert, select, text
from sqlalchemy.exc import DBAPIError

from api.database.database import migrate, migration_scripts, open_database, revision_of, write_transaction
from api.database.schema import all_tables
from api.record.tables import audit, inspections
from segdec.errors import ConfigError

NEW_COLUMNS = (
    *("unlike", "model_label"),
    *("plan", "plan_version", "plan_sha256", "plan_severity", "plan_finding"),
)
"""Columns that the first version of the table `inspections` did not have."""


def test_changed_tables_need_a_migration():
    statements = []
    mock = create_mock_engine(
        "sqlite://", lambda ddl, *_: statements.append(ddl.compile(dialect=mock.dialect))
    )
    all_tables().create_all(mock, checkfirst=False)
    digest = hashlib.sha256("".join(sorted(map(str, statements))).encode()).hexdigest()[:16]
    expected = {"0003": "6b63939514c03ee9"}
    head = migration_scripts().get_current_head()
    assert digest == expected.get(head), "add a migration, and its digest here"


def test_only_these_tables_are_append_only(engine):
    names = {
        "sqlite": "SELECT tbl_name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal",
    }
    with engine.connect() as connection:
        found = set(connection.execute(text(names[connection.dialect.name])).scalars())
    assert found == {"audit", "data_set_annotations", "data_set_versions"}


def test_the_first_version_is_migrated(engine):
    with write_transaction(engine) as connection:
        for column in NEW_COLUMNS:
            connection.execute(text(f"ALTER TABLE inspections DROP COLUMN {column}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    migrate(engine)
    with engine.connect() as connection:
        assert connection.execute(select(*(inspections.c[name] for name in NEW_COLUMNS))).all() == []
        assert revision_of(connection) == migration_scripts().get_current_head() != "0001"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_migration_of_a_large_record_has_no_time_limit(engine, monkeypatch):
    limits = []
    known = list(migration_scripts().walk_revisions())
    scripts = Mock(**{"get_current_head.return_value": "9999", "walk_revisions.return_value": known})
    monkeypatch.setattr("api.database.database.migration_scripts", lambda: scripts)

    def upgrade(config, _head):
        limits.append(config.attributes["connection"].execute(text("SHOW statement_timeout")).scalar())

    monkeypatch.setattr("api.database.database.command.upgrade", upgrade)
    migrate(engine)
    with engine.connect() as connection:
        limits.append(connection.execute(text("SHOW statement_timeout")).scalar())
    assert limits[0] == "0" != limits[1]


def test_a_newer_schema_is_rejected(engine):
    with write_transaction(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(
        ConfigError, match=r"has schema 9999, which this version does not know. Expected \d{4}"
    ):
        migrate(engine)


@pytest.mark.parametrize("change", ["UPDATE audit SET who = 'b'", "DELETE FROM audit"])
def test_the_audit_log_is_append_only(engine, change):
    line = {"at": datetime.now(UTC), "who": "a", "what": "review"}
    with write_transaction(engine) as connection:
        connection.execute(insert(audit), line)
    with pytest.raises(DBAPIError, match="append-only"), write_transaction(engine) as connection:
        connection.execute(text(change))


@pytest.mark.parametrize(
    "url", ["mysql://root@host/db", "nonsense", "sqlite://", "postgresql://u:secret@host:x/db"]
)
def test_an_invalid_url_is_rejected_without_its_password(url):
    with pytest.raises(ConfigError, match=r"Expected\s+sqlite:///FILE") as refusal:
        open_database(url)
    assert "secret" not in str(refusal.value)
