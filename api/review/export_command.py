"""`python -m api export-reviewed --out FOLDER`: exports reviewed inspections as a data set."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine, select

from api.record.filters import Filters
from api.record.initialization import PICTURES
from api.record.open_record import add_setting_flags, open_record, parse_time
from api.record.recording import open_picture_store
from api.record.storage.pictures import STORE_ID, FolderPictures, PictureStore
from api.record.tables import store
from api.review.reviewed_export import ExportSummary, describe_skipped, export_reviewed
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
    with open_record(options.record_database, options.record_folder) as engine:
        pictures = _open_pictures(engine, options.record_pictures, options.record_folder)
        summary = export_reviewed(engine, pictures, filters, options.out)
    print(_describe(summary, options.out))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m api export-reviewed",
        description="Export reviewed inspections as a data set of the layout 'manifest' for training.",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="new folder")
    add_setting_flags(parser, "record_folder", "record_database", "record_pictures")
    since = "inspected at or after this time: ISO 8601, in UTC if it has no zone"
    parser.add_argument("--since", type=_parse_utc_time, help=since)
    parser.add_argument("--until", type=_parse_utc_time, help="inspected before this time")
    parser.add_argument("--station", help="only of this station")
    parser.add_argument("--model", help="only inspected by the model of this name")
    return parser


def _parse_utc_time(text: str) -> datetime:
    moment = parse_time(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


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
