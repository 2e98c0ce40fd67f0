"""Schema and constraints of the database, on SQLite and PostgreSQL."""

import hashlib
from datetime import UTC, datetime

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import create_mock_engine, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError

from api.accounts.users import has_users
from api.records import tables
from api.records.database import migrate, migrations, open_database, write_transaction
from segdec.errors import ConfigError
from tests.api.records.filled_record import make_row, stock

SUMS = ("hour_totals", "station_days")
LATER_TABLES = (
    *SUMS,
    *("changed_settings", "scheduled_reports", "deliveries"),
    *("deleted_model_versions", "deleted_data_sets"),
    *(
        "proposal_orders",
        "training_members",
        "training_files",
        "training_chunks",
        "training_events",
        "training_workers",
        "training_jobs",
    ),
    *("data_set_proposals", "data_set_proposal_runs", "data_set_checks", "data_set_imports"),
    *("data_set_annotations", "data_set_versions", "data_set_photographs", "data_set_files", "data_sets"),
)


def test_changed_tables_need_a_migration():
    statements = []
    mock = create_mock_engine(
        "sqlite://", lambda ddl, *_: statements.append(ddl.compile(dialect=mock.dialect))
    )
    tables.metadata.create_all(mock, checkfirst=False)
    digest = hashlib.sha256("".join(sorted(map(str, statements))).encode()).hexdigest()[:16]
    expected = {
        "0002": "20564c74ecf08dde",
        "0003": "7abaea5a9df21f70",
        "0004": "187e4390f1ffb6ba",
        "0005": "5623b0e5118cfc02",
        "0006": "4f99d9ed86983a48",
        "0007": "08d2b5546a79b230",
        "0008": "202b7c7728a7da77",
        "0009": "2379ffa24aae2276",
        "0010": "5a6f66eb87c6659f",
        "0011": "5b171de12cb85e4b",
        "0012": "c3221081df8c4215",
        "0013": "38d55e226b134e5e",
        "0014": "c0f7bd5f1bdd95bb",
        "0015": "b39286b92143ddbc",
        "0016": "1214f449178f7242",
        "0017": "8d6b3635b4cec2c8",
        "0018": "b83959b70df3b0ab",
        "0019": "4d16e1d72659d08d",
        "0020": "cce4534b210c52c6",
        "0021": "5522ae8c3c771a16",
        "0022": "701f694ddf121550",
        "0023": "06dfdc1e98823119",
        "0024": "9711c8e68fcc4421",
        "0025": "4f06ecddf11f3d44",
        "0026": "d2bea6e03d305419",
    }
    head = ScriptDirectory.from_config(migrations()).get_current_head()
    assert digest == expected[head], "add a migration, and its digest here"


def test_a_database_of_an_earlier_version_gets_the_new_columns(engine):
    added = {
        "review_queue": ("lease_client", "lease_person"),
        "outbox": ("record_id", "kind"),
        "pictures": ("deleted_at", "deleted_by"),
        "inspections": ("distances", "highest_distance", "heat_map"),
    }
    indexes = {
        "inspections_unusual",
        "inspections_by_reviewer",
        "inspections_by_reviewer_and_label",
        "hours_by_station",
        "inspections_reviewed_again",
        "outbox_by_record",
    }
    stock(engine, [make_row(number, details=f'{{"lot": "{number}"}}') for number in (1, 2)])
    summed = [tables.metadata.tables[name] for name in SUMS]
    with engine.connect() as connection:
        sums = [sorted(connection.execute(select(table)).all()) for table in summed]
    assert all(sums)
    with write_transaction(engine) as connection:
        for name in ("tags", "sessions", "log_in_links", "failed_log_ins", "users", *LATER_TABLES):
            connection.execute(text(f"DROP TABLE {name}"))
        for name in indexes:
            connection.execute(text(f"DROP INDEX {name}"))
        for table, names in added.items():
            for name in names:
                connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {name}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0002'"))
    migrate(engine)
    for table in added:
        columns = {column["name"] for column in inspect(engine).get_columns(table)}
        assert columns == {column.name for column in tables.metadata.tables[table].c}
    found = {index["name"] for table in added for index in inspect(engine).get_indexes(table)}
    found |= {index["name"] for index in inspect(engine).get_indexes("hours")}
    assert indexes <= found
    with engine.connect() as connection:
        assert [sorted(connection.execute(select(table)).all()) for table in summed] == sums
        assert list(connection.execute(select(tables.tags))) == [("lot", "1", 1), ("lot", "2", 2)]
        assert not has_users(connection)
        assert append_only_tables(connection) == {"audit", "data_set_annotations", "data_set_versions"}


def test_jobs_of_an_earlier_version_get_the_new_columns(engine):
    with write_transaction(engine) as connection:
        connection.execute(text("DROP TABLE proposal_orders"))
        connection.execute(text("DROP INDEX training_chunks_by_sender"))
        connection.execute(text("ALTER TABLE training_chunks DROP COLUMN sent_by"))
        connection.execute(text("DROP TABLE training_members"))
        for table, column in (
            ("training_jobs", "worker_key"),
            ("training_jobs", "machines"),
            ("training_workers", "address"),
            ("training_workers", "waits_until"),
            ("training_workers", "problem_cause"),
            ("data_set_checks", "error_cause"),
            ("data_set_proposal_runs", "problem_cause"),
            ("data_set_proposal_runs", "error_cause"),
        ):
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0018'"))
    migrate(engine)
    members, workers = tables.training_members, tables.training_workers
    checks, runs = tables.data_set_checks, tables.data_set_proposal_runs
    for table in (tables.training_chunks, tables.training_jobs, workers, members, checks, runs):
        found = {column["name"] for column in inspect(engine).get_columns(table.name)}
        assert found == {column.name for column in table.c}
    [index] = inspect(engine).get_indexes("training_chunks")
    assert index["column_names"] == ["sent_by"]


def append_only_tables(connection):
    """The tables with triggers."""
    names = {
        "sqlite": "SELECT tbl_name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal",
    }
    return set(connection.execute(text(names[connection.dialect.name])).scalars())


def test_a_migration_of_a_large_record_has_no_time_limit(make_database, monkeypatch):
    engine, limits = open_database(make_database()), []
    migrate(engine)

    def upgrade(config, _head):
        limits.append(config.attributes["connection"].execute(text("SHOW statement_timeout")).scalar())

    monkeypatch.setattr("api.records.database.command.upgrade", upgrade)
    migrate(engine)
    with engine.connect() as connection:
        limits.append(connection.execute(text("SHOW statement_timeout")).scalar())
    engine.dispose()
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
