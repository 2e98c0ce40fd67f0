"""`python -m api export-reviewed --out FOLDER`: exports reviewed inspections as a data set."""

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from alembic.script import ScriptDirectory
from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from api.records.database import migrations, open_database, revision_of
from api.records.filters import Filters
from api.records.initialization import DATABASE, PICTURES, database_url
from api.records.recording import open_picture_store
from api.records.review.reviewed_export import ExportSummary, describe_skipped, export_reviewed
from api.records.storage.pictures import STORE_ID, FolderPictures, PictureStore
from api.records.tables import store
from api.settings import ENV_PREFIX, Settings
from segdec.config import GOOD
from segdec.errors import ConfigError


def run(arguments: Sequence[str]) -> None:
    """Exports, and prints what the export contains and skips.

    Raises:
        ConfigError: If the record cannot be used, the folder exists, or nothing matches.
        OSError: If a picture cannot be read, or the folder cannot be written.
    """
    options = _parser().parse_args(arguments)
    names = ("since", "until", "station", "model")
    filters = Filters(**{name: getattr(options, name) for name in names})
    with _open_record(options) as (engine, pictures):
        summary = export_reviewed(engine, pictures, filters, options.out)
    print(_describe(summary, options.out))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m api export-reviewed",
        description="Export reviewed inspections as a data set of the layout 'manifest' for training.",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="new folder")
    for name, kind in (("record_folder", Path), ("record_database", str), ("record_pictures", str)):
        field = Settings.model_fields[name]
        default = os.environ.get(ENV_PREFIX + name.upper()) or field.default
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, default=default and kind(default), help=field.description)
    since = "inspected at or after this time: ISO 8601, in UTC if it has no zone"
    parser.add_argument("--since", type=_parse_time, help=since)
    parser.add_argument("--until", type=_parse_time, help="inspected before this time")
    parser.add_argument("--station", help="only of this station")
    parser.add_argument("--model", help="only inspected by the model of this name")
    return parser


def _parse_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a time. Expected for example 2026-01-31 or 2026-01-31T06:00+01:00."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@contextmanager
def _open_record(options: argparse.Namespace) -> Iterator[tuple[Engine, PictureStore]]:
    """Opens an existing record for reading.

    Raises:
        ConfigError: If it does not exist, cannot be reached, or has another schema.
    """
    url, folder = options.record_database, options.record_folder
    if url is None and not (folder / DATABASE).is_file():
        raise ConfigError(
            f"There is no record in {folder}: it has no {DATABASE}. Expected the --record-folder of the "
            f"service, and its --record-database if it has one (or {ENV_PREFIX}RECORD_FOLDER and "
            f"{ENV_PREFIX}RECORD_DATABASE)."
        )
    engine = open_database(database_url(url, folder))
    try:
        _check_schema(engine)
        yield engine, _open_pictures(engine, options.record_pictures, folder)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise ConfigError(f"The record's database cannot be read: {reason}") from error
    finally:
        engine.dispose()


def _check_schema(engine: Engine) -> None:
    with engine.connect() as connection:
        found, known = revision_of(connection), ScriptDirectory.from_config(migrations()).get_current_head()
    if found != known:
        raise ConfigError(
            f"The record's database has schema {found}, expected {known}. Start the service of this version "
            "once: it migrates the database."
        )


def _open_pictures(engine: Engine, url: str | None, folder: Path) -> PictureStore:
    """Opens the pictures, and checks that they belong to the database: otherwise all would count as gone."""
    with engine.connect() as connection:
        known = connection.execute(select(store.c.id)).scalar()
    pictures = open_picture_store(url)
    if pictures is None and (folder / PICTURES / STORE_ID).is_file():
        pictures = FolderPictures(folder / PICTURES)
    if pictures is None or pictures.read_id() != known:
        raise ConfigError(
            f"{url or folder / PICTURES} contains no pictures of this record. Expected the --record-folder "
            "or --record-pictures of the service that writes the database."
        )
    return pictures


def _describe(summary: ExportSummary, out: Path) -> str:
    labels, total = summary.labels, summary.labels.total()
    defective = {name: number for name, number in sorted(labels.items()) if name != GOOD}
    classes = ", ".join(f"{number} {name}" for name, number in defective.items()) or "none defective"
    unmasked = sum(defective.values()) - summary.masks
    return (
        f"Exported {total} reviewed photographs of {len(summary.groups)} parts to {out}: "
        f"{labels[GOOD]} good, {classes}; {summary.masks} with a mask by a reviewer, {unmasked} with their "
        "label only.\n"
        f"Skipped: {describe_skipped(summary)}."
    )
