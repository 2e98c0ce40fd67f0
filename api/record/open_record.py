"""Opens an existing record for commands that read it."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from api.database.database import migrate, migration_scripts, open_database, revision_of
from api.database.database_files import files_of
from api.record.initialization import DATABASE, database_url
from api.record.settings import RecordSettings
from api.setting_group import ENV_PREFIX
from segdec.errors import ConfigError


def add_setting_flags(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds flags for settings that are paths or texts; their environment variables are the defaults."""
    for name in names:
        field, kind = (
            RecordSettings.model_fields[name],
            str if name.endswith(("database", "pictures")) else Path,
        )
        default = os.environ.get(ENV_PREFIX + name.upper()) or field.default
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, default=default and kind(default), help=field.description)


def parse_time(text: str) -> datetime:
    """Returns the time of an option; raises an ArgumentTypeError if it is none."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a time. Expected for example 2026-01-31 or 2026-01-31T06:00+01:00."
        ) from None


def create_if_missing(url: str | None, folder: Path) -> None:
    """Creates the tables of an empty database, so that the service can be prepared before its first start.

    Raises:
        ConfigError: If the database cannot be reached.
    """
    engine = open_database(database_url(url, folder))
    with _explained_errors(engine):
        is_empty = (files := files_of(engine)) is not None and files.is_new()
        if not is_empty:
            with engine.connect() as connection:
                is_empty = revision_of(connection) is None
        if is_empty:
            migrate(engine)


@contextmanager
def open_record(url: str | None, folder: Path) -> Iterator[Engine]:
    """Opens the database at `url`, or the one in `folder`.

    Raises:
        ConfigError: If it does not exist, cannot be reached, or has another schema.
    """
    if url is None and not (folder / DATABASE).is_file():
        raise ConfigError(
            f"There is no record in {folder}: it has no {DATABASE}. Expected the --record-folder of the "
            f"service, and its --record-database if it has one (or {ENV_PREFIX}RECORD_FOLDER and "
            f"{ENV_PREFIX}RECORD_DATABASE)."
        )
    engine = open_database(database_url(url, folder))
    with _explained_errors(engine):
        _check_schema(engine)
        yield engine


@contextmanager
def _explained_errors(engine: Engine) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise ConfigError(f"The record's database cannot be used: {reason}") from error
    finally:
        engine.dispose()


def _check_schema(engine: Engine) -> None:
    with engine.connect() as connection:
        revision, known = revision_of(connection), migration_scripts().get_current_head()
    if revision != known:
        raise ConfigError(
            f"The record's database has schema {revision}, expected {known}. Start the service of this "
            "version once: it migrates the database."
        )
