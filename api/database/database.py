"""The database of the record: SQLite in a file, or PostgreSQL at a URL."""

import sqlite3  # noqa: F401  # before TensorFlow, which replaces it by a copy that chooses other indexes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from api.database.database_files import INFO, DatabaseFiles, files_of
from api.database.schema import all_tables
from segdec.errors import ConfigError

SCRIPTS = Path(__file__).parent / "migrations"
WRITE_LOCK = 7_243_391
"""Number of the PostgreSQL advisory lock that admits one writing service at a time, as SQLite does."""
BUSY_S = 10.0
"""Seconds that a connection to SQLite waits for another transaction."""
CONNECT_S = 3
STATEMENT_MS = 10_000
"""Timeout of a PostgreSQL statement."""
DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg", "sqlite": "sqlite"}


def open_database(url: str) -> Engine:
    """Creates the engine of a database without connecting to it.

    Raises:
        ConfigError: If the URL is neither `sqlite:///FILE` nor `postgresql://USER:PASSWORD@HOST/NAME`.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed)
    return create_engine(
        parsed,
        hide_parameters=True,  # errors are logged: they would contain hashes of passwords
        pool_size=8,
        pool_pre_ping=True,
        pool_timeout=CONNECT_S,
        connect_args={
            "connect_timeout": CONNECT_S,
            "tcp_user_timeout": STATEMENT_MS,
            # A recorded inspection must survive a power loss, whatever the server's default.
            "options": f"-c synchronous_commit=on -c statement_timeout={STATEMENT_MS} -c timezone=UTC "
            f"-c idle_in_transaction_session_timeout={STATEMENT_MS}",
        },
    )


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        parsed = parsed.set(drivername=DRIVERS[parsed.drivername])
        parsed.get_dialect()
    except (ArgumentError, KeyError, NoSuchModuleError, ValueError) as error:
        raise ConfigError(
            f"The record's database '{url.partition('@')[2] or url}' cannot be used. Expected "
            "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."
        ) from error
    if parsed.get_backend_name() == "sqlite" and not parsed.database:
        raise ConfigError("The record's database 'sqlite://' names no file. Expected sqlite:///FILE.")
    return parsed


_engines: "WeakValueDictionary[Path, Engine]" = WeakValueDictionary()
"""Engines of SQLite files: one for each, because `DatabaseFiles` must know all connections of the process."""


def _open_sqlite(url: URL) -> Engine:
    path = Path(str(url.database)).absolute()
    if (known := _engines.get(path)) is not None:
        return known
    path.parent.mkdir(parents=True, exist_ok=True)
    files = DatabaseFiles(path)
    engine = create_engine(
        url, hide_parameters=True, connect_args={"timeout": BUSY_S}, execution_options={INFO: files}
    )
    files.watch(engine)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # otherwise the driver begins transactions itself, and not all
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {pragma}").close()
        files.note_opened(connection, record.info)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        files.check(connection)
        # A transaction that reads before it writes would fail if another one has written in between.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    _engines[path] = engine
    return engine


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """Yields a connection in a transaction, which is committed if the block succeeds.

    One service writes at a time. Therefore ids are in the order of commits (a reader that continues after the
    last id misses nothing), transactions cannot deadlock, and what a transaction has read stays valid.

    Raises:
        DatabaseReplacedError: If a SQLite file was removed or replaced: then the commit may be lost.
    """
    with engine.execution_options(writes=True).connect() as connection:
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": WRITE_LOCK})
            yield connection
        if (files := files_of(connection)) is not None:
            files.check(connection)


# === Schema ===


def migrate(engine: Engine) -> None:
    """Creates the tables, or migrates those of an earlier version; one service at a time.

    Raises:
        ConfigError: If a newer version made the database.
        SQLAlchemyError: If the database cannot be reached.
    """
    if (files := files_of(engine)) is not None:
        files.create()
    scripts = migration_scripts()
    head = scripts.get_current_head()
    with engine.connect() as connection:
        if revision_of(connection) == head:
            return  # without writing: a record can be read while nothing can be written
    with write_transaction(engine) as connection:
        revision = revision_of(connection)
        if revision is not None and revision not in {script.revision for script in scripts.walk_revisions()}:
            raise ConfigError(
                f"The record's database has schema {revision}, which this version does not know. Expected "
                f"{head} or an earlier one. Run the version that wrote it, or newer."
            )
        if engine.dialect.name == "postgresql":  # an index of millions of rows takes minutes
            connection.execute(text("SET LOCAL statement_timeout = 0"))
        if revision is None:
            all_tables().create_all(connection)
            MigrationContext.configure(connection).stamp(scripts, "head")
        elif revision != head:
            config = _configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


@cache
def migration_scripts() -> ScriptDirectory:
    """Returns the migrations that this version knows."""
    return ScriptDirectory.from_config(_configuration())


def _configuration() -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    return config


def revision_of(connection: Connection) -> str | None:
    """Returns the revision of the schema; None if the database is empty."""
    return MigrationContext.configure(connection).get_current_revision()
