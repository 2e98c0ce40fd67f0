"""What people have judged, as a data set to learn from: pictures, labels, and masks that they mended."""

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, Select, select

from api.records.inspection import Row
from api.records.queries import find_inspection, with_pictures
from api.records.review.reviews import UNSURE
from api.records.storage.pictures import PictureStore
from api.records.tables import inspections
from segdec.config import GOOD
from segdec.errors import ConfigError
from segdec.images import write_png
from segdec.mask_decoding import unpack_mask
from segdec.runtime.files import atomic_folder
from segdec.schemas import MaskAnswer

NAME_DIGITS = 32
"""Of a picture's SHA-256, in hex, that name it."""
ROWS = 200
"""Inspections that are read at once, with their masks."""
ORIGIN = ("name", "id", "station", "part_id", "inspected_at")
"""Columns of the table that leads from a photograph back to its inspection."""
SINGLE_DEFECT = 255
"""In masks where there is one class of defects; of several it is the place of the class in `classes.txt`."""


@dataclass(frozen=True)
class ReviewedFilters:
    """Which inspections are meant; None = any.

    Attributes:
        since: Inspected then or later.
        until: Inspected before then.
        station: Where.
        model: By which one.
    """

    since: datetime | None = None
    until: datetime | None = None
    station: str | None = None
    model: str | None = None

    def apply(self, statement: Select[Any]) -> Select[Any]:
        """Restricts a statement about inspections to them."""
        table = inspections.c
        if self.since is not None:
            statement = statement.where(table.inspected_at >= self.since)
        if self.until is not None:
            statement = statement.where(table.inspected_at < self.until)
        if self.station is not None:
            statement = statement.where(table.station == self.station)
        if self.model is not None:
            statement = statement.where(table.model == self.model)
        return statement


@dataclass
class ExportSummary:
    """What an export holds, and what it leaves out.

    Attributes:
        labels: How many photographs each label has.
        groups: Parts; a photograph that names none is one of its own.
        masks: Defective ones with a mask that a person gave.
        unsure: Left out, because nobody could say what they show.
        gone: Left out, because their picture was deleted or is lost.
        repeated: Reviews that a later one of the same picture stands for.
    """

    labels: Counter[str] = field(default_factory=Counter)
    groups: set[str] = field(default_factory=set)
    masks: int = 0
    unsure: int = 0
    gone: int = 0
    repeated: int = 0


def export_reviewed(
    engine: Engine, pictures: PictureStore, filters: ReviewedFilters, out: Path
) -> ExportSummary:
    """Writes what people have judged as a data set of the layout `manifest`: `out` is whole, or not there.

    It may be done while inspections and reviews come in: what is judged meanwhile may be missing.

    Args:
        engine: Of the record's database.
        pictures: The record's.
        filters: Which inspections.
        out: Folder to make.

    Raises:
        ConfigError: If `out` exists, or there is nothing to write.
        OSError: If a picture cannot be read, or the folder cannot be written.
        SQLAlchemyError: If the database does not answer.
    """
    if out.exists():
        raise ConfigError(f"{out} exists. Choose another folder: an export never changes one.")
    exported = ExportSummary()
    latest = _latest_reviews(engine, filters, exported)
    classes = _classes(engine, latest)
    with atomic_folder(out) as folder, _lists(folder, classes) as lists:
        writer = _Writer(folder, lists, classes, exported)
        for row in _read(engine, [one.id for one in latest]):
            picture = pictures.get(bytes(row["picture"])) if row["picture_state"] == "kept" else None
            if picture is None or hashlib.sha256(picture).digest() != bytes(row["picture"]):
                exported.gone += 1
            elif row["reviewed_label"] in classes:  # it may have been changed since it was listed
                writer.add(row, picture)
        if not exported.labels:
            raise ConfigError(
                f"No photograph to export: {describe_skipped(exported)}. Expected some that were judged good or "
                "defective."
            )
    return exported


def describe_skipped(exported: ExportSummary) -> str:
    """Says how many reviews there were that are not in the export."""
    return (
        f"{exported.unsure} unsure, {exported.gone} whose picture is gone, {exported.repeated} that a later "
        "review of the same picture stands for"
    )


# === Which ones ===


@dataclass(frozen=True)
class _Review:
    id: int
    label: str
    at: datetime
    maker: tuple[str, str, str | None]


def _latest_reviews(engine: Engine, filters: ReviewedFilters, exported: ExportSummary) -> list[_Review]:
    """The latest review of each picture, in the order of the inspections, without those that are unsure."""
    latest: dict[bytes, _Review] = {}
    for row in _pages(engine, filters):
        maker = (row["model"], row["version"], row["manifest_sha256"])
        review = _Review(row["id"], row["reviewed_label"], row["reviewed_at"], maker)
        known = latest.get(picture := bytes(row["picture"]))
        exported.repeated += known is not None
        if known is None or (review.at, review.id) > (known.at, known.id):
            latest[picture] = review
    exported.unsure = sum(review.label == UNSURE for review in latest.values())
    told = (review for review in latest.values() if review.label != UNSURE)
    return sorted(told, key=lambda review: review.id)


def _pages(engine: Engine, filters: ReviewedFilters) -> Iterator[Row]:
    """The reviewed inspections by id; each page is a transaction of its own, so that none lasts."""
    names = ("id", "picture", "reviewed_label", "reviewed_at", "model", "version", "manifest_sha256")
    table, after = inspections.c, 0
    while True:
        statement = filters.apply(select(*(table[name] for name in names)))
        statement = statement.where(table.reviewed_label.is_not(None), table.id > after)
        with engine.connect() as connection:
            rows = connection.execute(statement.order_by(table.id).limit(10 * ROWS)).mappings().all()
        if not rows:
            return
        yield from rows
        after = rows[-1]["id"]


def _classes(engine: Engine, reviews: Sequence[_Review]) -> tuple[str, ...]:
    """`good`, the classes of the models that judged them, the newest first, then what else people named."""
    newest = {review.maker: review.id for review in reviews}
    names = {GOOD: None}
    with engine.connect() as connection:
        for record_id in sorted(newest.values(), reverse=True):
            names |= dict.fromkeys(_model_classes(connection, record_id))
    return tuple(names | dict.fromkeys(sorted({review.label for review in reviews})))


def _model_classes(connection: Connection, record_id: int) -> list[str]:
    row = find_inspection(connection, record_id)
    assert row is not None, "inspections are never deleted"
    return list(json.loads(row["answer"])["decision"]["probabilities"])[1:]


def _read(engine: Engine, ids: Sequence[int]) -> Iterator[Row]:
    names = ("id", "picture", "part_id", "station", "inspected_at", "reviewed_label", "reviewed_mask")
    table = inspections.c
    statement = with_pictures([table[name] for name in names]).order_by(table.id)
    for start in range(0, len(ids), ROWS):
        some = statement.where(table.id.in_(ids[start : start + ROWS]))
        with engine.connect() as connection:
            rows = connection.execute(some).mappings().all()
        yield from rows


# === What is written ===


@contextmanager
def _lists(folder: Path, classes: Sequence[str]) -> Iterator[tuple[TextIO, TextIO]]:
    """Makes what does not grow, and opens manifest and table of origins, which do."""
    for name in ("pictures", "masks"):
        (folder / name).mkdir()
    (folder / "classes.txt").write_text("".join(f"{name}\n" for name in classes[1:]), "utf-8")
    with (
        (folder / "manifest.jsonl").open("w", encoding="utf-8") as manifest,
        (folder / "inspections.csv").open("w", encoding="utf-8", newline="") as origins,
    ):
        csv.writer(origins).writerow(ORIGIN)
        yield manifest, origins


class _Writer:
    """Adds photographs and masks to a folder, and lines to its lists."""

    def __init__(
        self, folder: Path, lists: tuple[TextIO, TextIO], classes: Sequence[str], exported: ExportSummary
    ) -> None:
        self._folder, self._exported = folder, exported
        self._manifest, self._origins = lists[0], csv.writer(lists[1])
        self._places = {name: place for place, name in enumerate(classes)}

    def add(self, row: Row, picture: bytes) -> None:
        """Writes one photograph, as it was sent, and what a person says of it."""
        digest, label = bytes(row["picture"]).hex()[:NAME_DIGITS], row["reviewed_label"]
        name, image = f"reviewed/{digest}", f"pictures/{digest}.{row['picture_format']}"
        (self._folder / image).write_bytes(picture)
        line = {"image": image, "label": label, "name": name, "group": _group(row) or name}
        mask = self._mask(row)
        if mask is not None:
            line["mask"] = f"masks/{digest}.png"
            write_png(self._folder / line["mask"], mask)
            self._exported.masks += 1
        self._manifest.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._origins.writerow([name, *(row[column] for column in ORIGIN[1:])])
        self._exported.labels[label] += 1
        self._exported.groups.add(line["group"])

    def _mask(self, row: Row) -> NDArray[np.uint8] | None:
        """The mask that a person gave; that of a model which nobody touched is no truth to learn from."""
        if row["reviewed_mask"] is None or row["reviewed_label"] == GOOD:
            return None
        given = MaskAnswer.model_validate_json(row["reviewed_mask"])
        pixels = unpack_mask(given)
        if not pixels.any():
            return None
        if len(self._places) == 2:
            return np.where(pixels > 0, np.uint8(SINGLE_DEFECT), np.uint8(0))
        own = self._places[row["reviewed_label"]]
        values = np.full(256, own, np.uint8)
        values[0] = 0
        for value, name in enumerate(given.labels or ()):
            values[value] = self._places.get(name, own) if value else 0
        return values[pixels]


def _group(row: Row) -> str:
    """The part, in what a manifest takes for one; photographs of one part are alike wherever it was seen."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in row["part_id"] or "").strip()
