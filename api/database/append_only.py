"""Triggers that reject changes of rows, in SQLite and PostgreSQL."""

from typing import Any

from sqlalchemy import Connection, Table, event, text

SQLITE_TRIGGER = """
CREATE TRIGGER {0}_is_not_{1}d BEFORE {1} ON {0}{3}
BEGIN SELECT RAISE(ABORT, '{2} is append-only'); END
"""
SQLITE_EXCEPTION = " WHEN NOT EXISTS ({0})"
POSTGRESQL_TRIGGER = """
CREATE OR REPLACE FUNCTION refuse_to_change_{0}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '{1} is append-only'; END $$;
CREATE TRIGGER {0}_is_append_only BEFORE UPDATE OR {2}TRUNCATE ON {0}
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_{0}()
"""
POSTGRESQL_EXCEPTION = """
CREATE OR REPLACE FUNCTION refuse_to_delete_{0}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF NOT EXISTS ({2}) THEN RAISE EXCEPTION '{1} is append-only'; END IF; RETURN OLD; END $$;
CREATE TRIGGER {0}_is_not_deleted BEFORE DELETE ON {0}
FOR EACH ROW EXECUTE FUNCTION refuse_to_delete_{0}()
"""


def reject_changes(table: Table, name: str, deletable: str | None = None) -> None:
    """Adds triggers to a table, when it is created, that reject changes of its rows.

    Args:
        table: The table.
        name: Its name in errors.
        deletable: A query that finds a row if the row `OLD` may be deleted; None: none may.
    """

    @event.listens_for(table, "after_create")
    def create(_table: Table, connection: Connection, **_: Any) -> None:
        _create_triggers(connection, table.name, name, deletable)


def _create_triggers(connection: Connection, table: str, name: str, deletable: str | None) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text(POSTGRESQL_TRIGGER.format(table, name, "" if deletable else "DELETE OR ")))
        if deletable:
            connection.execute(text(POSTGRESQL_EXCEPTION.format(table, name, deletable)))
        return
    for verb in ("update", "delete"):
        exception = SQLITE_EXCEPTION.format(deletable) if verb == "delete" and deletable else ""
        connection.execute(text(SQLITE_TRIGGER.format(table, verb, name, exception)))
