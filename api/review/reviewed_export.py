"""Exports reviewed inspections as a data set: pictures, labels and corrected masks."""

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, select

from api.record.filters import Filters, equal, in_period
from api.record.inspection import Row
from api.record.inspection_rows import class_names
from api.record.queries import find_inspection, with_pictures
from api.record.storage.pictures import PictureStore
from api.record.tables import inspections
from api.review.corrected_masks import may_be_tolerated, number_classes
from segdec.config import GOOD
from segdec.errors import ConfigError
from segdec.images import write_png
from segdec.runtime.class_list import format_class_list
from segdec.runtime.csv_cells import neutralise_cells
from segdec.runtime.files import atomic_folder
from segdec.runtime.identifiers import UNSURE

NAME_DIGITS = 32
"""Hex digits of the picture's SHA-256 in file names."""
ROWS = 200
"""Inspections per query, with their masks."""
ORIGIN = ("name", "id", "station", "part_id", "inspected_at")
"""Columns of `inspections.csv`, which maps photographs to inspections."""
SINGLE_DEFECT = 255
"""Mask value if there is one defect class; with several, values are class indices."""


@dataclass
class ExportSummary:
    """What an export contains and skips.

    Attributes:
        labels: Number of photographs by label.
        groups: Parts; a photograph without a part is its own group.
        masks: Defective photographs with a mask by a reviewer.
        unsure: Skipped because the review is `unsure`.
        tolerated: Skipped because a part that is called good may have a defect that its inspection plan
            allows.
        gone: Skipped because the picture was deleted, is lost or corrupted.
        repeated: Reviews that a later review of the same picture replaces.
    """

    labels: Counter[str] = field(default_factory=Counter)
    groups: set[str] = field(default_factory=set)
    masks: int = 0
    unsure: int = 0
    tolerated: int = 0
    gone: int = 0
    repeated: int = 0


def export_reviewed(engine: Engine, pictures: PictureStore, filters: Filters, out: Path) -> ExportSummary:
    """Writes reviewed inspections into the new folder `out`, a data set of the layout `manifest`, or nothing.

    Inspections and reviews that arrive meanwhile may be missed.

    Raises:
        ConfigError: If `out` exists, or nothing matches.
        OSError: If a picture cannot be read, or the folder cannot be written.
        SQLAlchemyError: If the database does not answer.
    """
    if out.exists():
        raise ConfigError(f"{out} exists. Choose another folder: an export never changes one.")
    summary = ExportSummary()
    latest = _latest_reviews(engine, filters, summary)
    classes = _classes(engine, latest)
    with atomic_folder(out) as folder, _open_lists(folder, classes) as lists:
        writer = _Writer(folder, lists, classes, summary)
        for row in _read_rows(engine, [one.id for one in latest]):
            picture = pictures.get(bytes(row["picture"])) if row["picture_state"] == "kept" else None
            if picture is None or hashlib.sha256(picture).digest() != bytes(row["picture"]):
                summary.gone += 1
            elif may_be_tolerated(row):
                summary.tolerated += 1
            elif row["reviewed_label"] in classes:  # the review may have changed meanwhile
                writer.add(row, picture)
        if not summary.labels:
            raise ConfigError(
                f"No photograph to export: {describe_skipped(summary)}. Expected photographs reviewed "
                "as good or defective."
            )
    return summary


def describe_skipped(summary: ExportSummary) -> str:
    tolerated = f"{summary.tolerated} good ones with a defect that their inspection plan may allow, "
    return (
        f"{summary.unsure} unsure, {tolerated if summary.tolerated else ''}{summary.gone} whose picture is "
        f"gone, {summary.repeated} replaced by a later review of the same picture"
    )


# === Selection ===


@dataclass(frozen=True)
class _Review:
    id: int
    label: str
    at: datetime
    model: tuple[str, str, str | None]


def _latest_reviews(engine: Engine, filters: Filters, summary: ExportSummary) -> list[_Review]:
    """Returns the latest review of each picture, by id of the inspection, without unsure ones."""
    latest: dict[bytes, _Review] = {}
    for row in _review_rows(engine, filters):
        model = (row["model"], row["version"], row["manifest_sha256"])
        review = _Review(row["id"], row["reviewed_label"], row["reviewed_at"], model)
        known = latest.get(picture := bytes(row["picture"]))
        summary.repeated += known is not None
        if known is None or (review.at, review.id) > (known.at, known.id):
            latest[picture] = review
    summary.unsure = sum(review.label == UNSURE for review in latest.values())
    decided = (review for review in latest.values() if review.label != UNSURE)
    return sorted(decided, key=lambda review: review.id)


def _review_rows(engine: Engine, filters: Filters) -> Iterator[Row]:
    """Yields reviewed inspections by id; each page has a short transaction of its own."""
    names = ("id", "picture", "reviewed_label", "reviewed_at", "model", "version", "manifest_sha256")
    table, after = inspections.c, 0
    while True:
        statement = select(*(table[name] for name in names))
        statement = statement.where(table.reviewed_label.is_not(None), table.id > after)
        statement = statement.where(
            *in_period(table.inspected_at, filters),
            *equal(inspections, station=filters.station, model=filters.model),
        )
        with engine.connect() as connection:
            rows = connection.execute(statement.order_by(table.id).limit(10 * ROWS)).mappings().all()
        if not rows:
            return
        yield from rows
        after = rows[-1]["id"]


def _classes(engine: Engine, reviews: Sequence[_Review]) -> tuple[str, ...]:
    """Returns `good`, the classes of the models (the newest first), then other labels of reviews."""
    newest = {review.model: review.id for review in reviews}
    names = {GOOD: None}
    with engine.connect() as connection:
        for record_id in sorted(newest.values(), reverse=True):
            names |= dict.fromkeys(_model_classes(connection, record_id))
    return tuple(names | dict.fromkeys(sorted({review.label for review in reviews})))


def _model_classes(connection: Connection, record_id: int) -> list[str]:
    row = find_inspection(connection, record_id)
    assert row is not None, "inspections are never deleted"
    return class_names(row)[1:]


def _read_rows(engine: Engine, ids: Sequence[int]) -> Iterator[Row]:
    names = (
        *("id", "picture", "part_id", "station", "inspected_at"),
        *("reviewed_label", "reviewed_mask", "label", "model_label"),
    )
    table = inspections.c
    statement = with_pictures([table[name] for name in names]).order_by(table.id)
    for start in range(0, len(ids), ROWS):
        some = statement.where(table.id.in_(ids[start : start + ROWS]))
        with engine.connect() as connection:
            rows = connection.execute(some).mappings().all()
        yield from rows


# === Files ===


@contextmanager
def _open_lists(folder: Path, classes: Sequence[str]) -> Iterator[tuple[TextIO, TextIO]]:
    """Creates folders and list of classes, and opens the manifest and the table of inspections."""
    for name in ("pictures", "masks"):
        (folder / name).mkdir()
    (folder / "classes.txt").write_text(format_class_list(classes[1:]), "utf-8")
    with (
        (folder / "manifest.jsonl").open("w", encoding="utf-8") as manifest,
        (folder / "inspections.csv").open("w", encoding="utf-8", newline="") as origins,
    ):
        csv.writer(origins).writerow(ORIGIN)
        yield manifest, origins


class _Writer:
    """Adds photographs, masks and their entries to the folder."""

    def __init__(
        self, folder: Path, lists: tuple[TextIO, TextIO], classes: Sequence[str], summary: ExportSummary
    ) -> None:
        self._folder, self._summary = folder, summary
        self._manifest, self._origins = lists[0], csv.writer(lists[1])
        self._indices = {name: index for index, name in enumerate(classes)}

    def add(self, row: Row, picture: bytes) -> None:
        digest, label = bytes(row["picture"]).hex()[:NAME_DIGITS], row["reviewed_label"]
        name, image = f"reviewed/{digest}", f"pictures/{digest}.{row['picture_format']}"
        (self._folder / image).write_bytes(picture)
        entry = {"image": image, "label": label, "name": name, "group": _group(row) or name}
        mask = self._mask(row)
        if mask is not None:
            entry["mask"] = f"masks/{digest}.png"
            write_png(self._folder / entry["mask"], mask)
            self._summary.masks += 1
        self._manifest.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._origins.writerow(neutralise_cells([name, *(row[column] for column in ORIGIN[1:])]))
        self._summary.labels[label] += 1
        self._summary.groups.add(entry["group"])

    def _mask(self, row: Row) -> NDArray[np.uint8] | None:
        """Returns the mask by a reviewer; an unconfirmed prediction is not ground truth."""
        pixels = number_classes(row, self._indices)
        if pixels is not None and len(self._indices) == 2:
            return np.where(pixels > 0, np.uint8(SINGLE_DEFECT), np.uint8(0))
        return pixels


def _group(row: Row) -> str:
    """Returns the part without characters that a manifest rejects, regardless of the station."""
    part = row["part_id"] or ""
    return "".join(char if char.isprintable() else "\ufffd" for char in part).strip()
