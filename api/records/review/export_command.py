"""`python -m api export-reviewed --out FOLDER`: what people have judged, as a data set to learn from."""

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
from api.records.initialization import DATABASE, PICTURES, database_url
from api.records.recording import open_picture_store
from api.records.review.reviewed_export import (
    ExportSummary,
    ReviewedFilters,
    describe_skipped,
    export_reviewed,
)
from api.records.storage.pictures import STORE_ID, FolderPictures, PictureStore
from api.records.tables import store
from api.settings import ENV_PREFIX, Settings
from segdec.config import GOOD
from segdec.errors import ConfigError


def run(words: Sequence[str]) -> None:
    """Exports, and prints what is in the export and what is not.

    Args:
        words: The flags.

    Raises:
        ConfigError: If the record cannot be used, the folder exists, or there is nothing to write.
        OSError: If a picture cannot be read, or the folder cannot be written.
    """
    options = _parser().parse_args(words)
    filters = ReviewedFilters(options.since, options.until, options.station, options.model)
    with _opened(options) as (engine, pictures):
        exported = export_reviewed(engine, pictures, filters, options.out)
    print(_describe(exported, options.out))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m api export-reviewed",
        description="Write what people have judged as a data set of the layout 'manifest', to learn from.",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder to make")
    for name, kind in (("record_folder", Path), ("record_database", str), ("record_pictures", str)):
        field = Settings.model_fields[name]
        default = os.environ.get(ENV_PREFIX + name.upper()) or field.default
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, default=default and kind(default), help=field.description)
    parser.add_argument(
        "--since", type=_moment, help="inspected then or later: ISO 8601, UTC where it says nothing"
    )
    parser.add_argument("--until", type=_moment, help="inspected before then")
    parser.add_argument("--station", help="of this station alone")
    parser.add_argument("--model", help="judged by the model of this name alone")
    return parser


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no time. Expected one such as 2026-01-31 or 2026-01-31T06:00+01:00."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@contextmanager
def _opened(options: argparse.Namespace) -> Iterator[tuple[Engine, PictureStore]]:
    """Opens a record that is there, to read from it.

    Raises:
        ConfigError: If it is not there, cannot be reached, or is not of today's form.
    """
    url, folder = options.record_database, options.record_folder
    if url is None and not (folder / DATABASE).is_file():
        raise ConfigError(
            f"There is no record in {folder}: it has no {DATABASE}. Expected the --record-folder of the "
            f"service, and its --record-database where it has one (or {ENV_PREFIX}RECORD_FOLDER and "
            f"{ENV_PREFIX}RECORD_DATABASE)."
        )
    engine = open_database(database_url(url, folder))
    try:
        _check_form(engine)
        yield engine, _open_pictures(engine, options.record_pictures, folder)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise ConfigError(f"The record's database cannot be read: {reason}") from error
    finally:
        engine.dispose()


def _check_form(engine: Engine) -> None:
    with engine.connect() as connection:
        found, known = revision_of(connection), ScriptDirectory.from_config(migrations()).get_current_head()
    if found != known:
        raise ConfigError(
            f"The record's database is of form {found}, expected {known}: start the service of this version "
            "with it once, which brings it up to date."
        )


def _open_pictures(engine: Engine, place: str | None, folder: Path) -> PictureStore:
    """The pictures of this database: of others, none would be found, and all would be counted as gone."""
    with engine.connect() as connection:
        known = connection.execute(select(store.c.id)).scalar()
    pictures = open_picture_store(place)
    if pictures is None and (folder / PICTURES / STORE_ID).is_file():
        pictures = FolderPictures(folder / PICTURES)
    if pictures is None or pictures.read_id() != known:
        raise ConfigError(
            f"{place or folder / PICTURES} holds no pictures of this record. Expected the --record-folder or "
            "--record-pictures of the service that writes the database."
        )
    return pictures


def _describe(exported: ExportSummary, out: Path) -> str:
    labels, wrote = exported.labels, exported.labels.total()
    defective = {name: number for name, number in sorted(labels.items()) if name != GOOD}
    classes = ", ".join(f"{number} {name}" for name, number in defective.items()) or "none defective"
    unmasked = sum(defective.values()) - exported.masks
    return (
        f"Wrote {wrote} reviewed photographs of {len(exported.groups)} parts to {out}: {labels[GOOD]} good, "
        f"{classes}; {exported.masks} with a mask that a person gave, {unmasked} with their label alone.\n"
        f"Left out: {describe_skipped(exported)}."
    )
