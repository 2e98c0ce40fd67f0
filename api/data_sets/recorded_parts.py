"""Adds photographs of the record to a data set, with their reviews as annotations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine, RowMapping

from api.data_sets.annotations import NewAnnotation, annotate
from api.data_sets.class_masks import make_class_mask
from api.data_sets.definitions import classes_of, find_data_set, set_classes
from api.data_sets.names import extend_classes
from api.data_sets.new_file import NewFile
from api.data_sets.photographs import AddedPhotograph, NewPhotograph, add_photograph, find_photograph
from api.data_sets.schemas import AddedParts
from api.errors import RequestError
from api.record.filters import Filters
from api.record.queries import add_audit_entry, with_pictures
from api.record.record_view import record_not_found
from api.record.search import list_inspections
from api.record.storage.pictures import PictureStore
from api.record.tables import inspections
from api.review.corrected_masks import may_be_tolerated, number_classes
from segdec.annotation_content import AnnotationContent
from segdec.config import GOOD
from segdec.mask_decoding import unpack_mask
from segdec.runtime.identifiers import UNSURE
from segdec.schemas import MaskAnswer

MAX_PARTS = 200
MAX_BYTES = 64 * 2**20
"""Photographs in a request: at most this many bytes, since all are in memory, but always one."""
COLUMNS = [
    inspections.c[name]
    for name in (
        *("id", "picture", "part_id", "mask"),
        *("reviewed_label", "reviewed_at", "reviewer", "reviewed_mask", "label", "model_label"),
    )
]


@dataclass(frozen=True)
class RecordedPart:
    """An inspection whose photograph exists."""

    row: RowMapping
    file: NewFile

    @property
    def label(self) -> str | None:
        """The label of its review; None without one, and if it is no label of the surface."""
        label: str | None = self.row["reviewed_label"]
        return None if label == UNSURE or may_be_tolerated(self.row) else label


@dataclass(frozen=True)
class FoundParts:
    """The inspections of one request.

    `parts` are those whose photograph exists, `gone` is the number of the others. The next request continues
    at `next_before`; None: nowhere.
    """

    parts: Sequence[RecordedPart]
    gone: int
    next_before: int | None


def find_parts(
    engine: Engine, pictures: PictureStore, filters: Filters, record_ids: Sequence[int], before: int | None
) -> FoundParts:
    """Reads the inspections that a search finds, or those with these ids, the newest first.

    Raises:
        RequestError: 404 if there is no inspection with one of the ids.
    """
    with engine.connect() as connection:
        rows = _rows(connection, filters, record_ids, before)
    parts: list[RecordedPart] = []
    gone = total = 0
    for position, row in enumerate(rows[:MAX_PARTS]):
        file = _read(pictures, row)
        if file is None:
            gone += 1
            continue
        if parts and total + file.bytes > MAX_BYTES:
            return FoundParts(parts, gone, rows[position - 1]["id"])
        parts.append(RecordedPart(row, file))
        total += file.bytes
    return FoundParts(parts, gone, rows[MAX_PARTS - 1]["id"] if len(rows) > MAX_PARTS else None)


def _rows(
    connection: Connection, filters: Filters, record_ids: Sequence[int], before: int | None
) -> Sequence[RowMapping]:
    if not record_ids:
        return list_inspections(connection, filters, before, MAX_PARTS + 1, COLUMNS)
    chosen = with_pictures(COLUMNS).where(inspections.c.id.in_(record_ids)).order_by(inspections.c.id.desc())
    rows = connection.execute(chosen).mappings().all()
    if missing := set(record_ids) - {row["id"] for row in rows}:
        raise record_not_found(min(missing))
    return [row for row in rows if before is None or row["id"] < before]


def _read(pictures: PictureStore, row: RowMapping) -> NewFile | None:
    """Returns the photograph; None if it was deleted, is lost or damaged."""
    data = pictures.get(bytes(row["picture"])) if row["picture_state"] == "kept" else None
    if data is None:
        return None
    mask = MaskAnswer.model_validate_json(row["mask"])
    file = NewFile(data, row["picture_format"], mask.width, mask.height)
    return file if file.sha256 == bytes(row["picture"]) else None


# === Annotations ===


def add_reviewed_classes(
    connection: Connection, data_set_id: int, parts: Sequence[RecordedPart], who: str
) -> list[str]:
    """Adds the classes that the reviews name to the data set; returns all its classes.

    Raises:
        RequestError: 404 if the data set does not exist, 400 if a class has an invalid name.
    """
    row = find_data_set(connection, data_set_id)
    known = classes_of(row)
    new = [name for name in dict.fromkeys(_reviewed_classes(parts)) if name not in known]
    if new:
        set_classes(connection, row, extend_classes(known, new), who)
    return [*known, *new]


def _reviewed_classes(parts: Sequence[RecordedPart]) -> Iterator[str]:
    for part in parts:
        if part.label not in (None, GOOD):
            yield str(part.label)
            yield from _classes_in_mask(part.row)


def _classes_in_mask(row: RowMapping) -> Iterator[str]:
    if row["reviewed_mask"] is not None:
        mask = MaskAnswer.model_validate_json(row["reviewed_mask"])
        if mask.labels is not None:
            present = set(unpack_mask(mask).reshape(-1).tolist()) - {0}
            yield from (name for value, name in enumerate(mask.labels) if value in present)


def make_masks(parts: Sequence[RecordedPart], classes: Sequence[str]) -> dict[int, NewFile]:
    """Returns the masks of reviewers by the id of the inspection. Slow, so call it in a thread."""
    numbers = {name: number for number, name in enumerate(classes, 1)}
    masks = {}
    for part in parts:
        pixels = None if part.label is None else number_classes(part.row, numbers)
        if pixels is not None:
            try:
                file = make_class_mask(pixels, part.label, classes)
            except RequestError:  # the mask has no pixel of the label: only the label is certain
                continue
            if file is not None:
                masks[part.row["id"]] = file
    return masks


def add_parts(
    connection: Connection,
    data_set_id: int,
    page: FoundParts,
    masks: dict[int, NewFile],
    who: str,
    now: datetime,
) -> AddedParts:
    """Adds photographs; one that nobody has annotated in the data set gets the review as annotation.

    The rows of their files must exist: see `DataSetStore.write`.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    name = find_data_set(connection, data_set_id)["name"]
    counts = AddedParts(
        added=0, restored=0, present=0, gone=page.gone, annotated=0, next_before=page.next_before
    ).model_dump()
    for part in page.parts:
        number, part_id = part.row["id"], part.row["part_id"] or ""
        new = NewPhotograph(part.file, f"record-{number}", part_id, record_id=number)
        added = add_photograph(connection, data_set_id, new, who, now)
        counts[added.outcome] += 1
        counts["annotated"] += _annotate(connection, data_set_id, added, part, masks.get(number))
    if changed := counts["added"] + counts["restored"]:
        add_audit_entry(
            connection, who, "add inspected photographs", after={"data_set": name, "count": changed}
        )
    return AddedParts(**counts)


def _annotate(
    connection: Connection, data_set_id: int, added: AddedPhotograph, part: RecordedPart, mask: NewFile | None
) -> bool:
    """Adds the review as annotation; returns whether there is one and the photograph had none."""
    row = find_photograph(connection, data_set_id, added.id)
    if part.label is None or row["annotation_id"] is not None:
        return False
    author, at = part.row["reviewer"] or "", part.row["reviewed_at"]
    content = AnnotationContent(label=part.label)
    new = NewAnnotation(content, None if mask is None else mask.sha256, "reviewed", author, at)
    annotate(connection, data_set_id, added.id, new, None, row["leased_to"])
    return True
