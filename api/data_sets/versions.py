"""Versions of a data set: what it contained at a time. A version never changes.

Its content is a manifest of JSON lines, as the layout `manifest` of `datasets` reads it, with the digest of
each file. Equal content has an equal manifest.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select

from api.data_sets.definitions import classes_of, find_data_set
from api.data_sets.names import IGNORE
from api.data_sets.new_file import NewFile
from api.data_sets.schemas import Version, VersionCounts, VersionList
from api.data_sets.splits import Placement, place_photographs
from api.data_sets.tables import data_set_annotations, data_set_files, data_set_photographs, data_set_versions
from api.errors import RequestError
from api.record.queries import add_audit_entry
from segdec.annotation_content import AnnotationContent
from segdec.runtime.label_names import is_ignored

MANIFEST_FORMAT = "jsonl"
MAX_LISTED = 1000
PHOTOGRAPHS, MASKS = "photographs", "masks"
"""Folders of the files in a version."""
table, photographs = data_set_versions.c, data_set_photographs.c
Entry = dict[str, str]
"""A line of a manifest."""


@dataclass(frozen=True)
class Snapshot:
    """The content of a data set at a time: its manifest, and the classes to which masks refer."""

    manifest: NewFile
    classes: list[str]
    counts: VersionCounts


def take_snapshot(connection: Connection, data_set_id: int) -> Snapshot:
    """Returns what a version made now would contain: labelled photographs, not removed and not `ignore`.

    Raises:
        RequestError: 404 if the data set does not exist, 409 if no photograph is labelled.
    """
    names = ("name", "sha256", "part", "split", "mask", *AnnotationContent.model_fields)
    statement = select(*(photographs[name] for name in names), data_set_files.c.format)
    statement = statement.join_from(
        data_set_photographs, data_set_files, data_set_files.c.sha256 == photographs.sha256
    )
    statement = statement.where(
        photographs.data_set_id == data_set_id,
        photographs.removed_at.is_(None),
        photographs.label.is_not(None),
        photographs.label != IGNORE,
    )
    rows = sorted(connection.execute(statement).mappings(), key=lambda row: row["name"])
    classes = classes_of(find_data_set(connection, data_set_id))  # after the rows: classes are only added
    if not rows:
        detail = "No photograph of the data set is labelled. Label photographs, then make a version."
        raise RequestError(409, "nothing_labelled", detail)
    placed = zip(rows, place_photographs(rows), strict=True)
    entries = [_make_entry(row, placement) for row, placement in placed]
    lines = (json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    counts = VersionCounts(
        photographs=len(rows),
        labels=dict(sorted(Counter(row["label"] for row in rows).items())),
        masks=sum(row["mask"] is not None for row in rows),
        parts=len({row["part"] or (row["name"],) for row in rows}),
    )
    return Snapshot(NewFile("".join(lines).encode(), MANIFEST_FORMAT), classes, counts)


def _make_entry(row: RowMapping, placement: Placement) -> Entry:
    image = f"{PHOTOGRAPHS}/{bytes(row['sha256']).hex()}.{row['format']}"
    entry = {"image": image, "label": row["label"], "name": row["name"]}
    if placement.group:
        entry["group"] = placement.group
    if placement.split:
        entry["split"] = placement.split
    if row["mask"] is not None:
        entry["class_mask"] = f"{MASKS}/{bytes(row['mask']).hex()}.png"
    if row["is_boxes"]:
        entry["supervision"] = "box"
    return entry


def read_content(entry: Mapping[str, Any]) -> AnnotationContent:
    """Returns what the annotation of a line of a manifest says."""
    label = entry["label"]
    is_boxes = entry.get("supervision") == "box"
    return AnnotationContent(label=None if is_ignored(label) else label, is_boxes=is_boxes)


def read_manifest(content: bytes) -> list[Entry]:
    """Returns the lines of a manifest."""
    return [json.loads(line) for line in content.decode().split("\n") if line]


def list_files(entry: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yields path and digest of the files of a line: the photograph, then its mask."""
    for path in filter(None, (entry["image"], entry.get("class_mask"))):
        yield path, bytes.fromhex(path.rpartition("/")[2].partition(".")[0])


def lists_file(manifest: bytes, sha256: str) -> bool:
    """Returns whether a manifest lists a photograph or a mask, without parsing it.

    A name of a photograph cannot contain these texts: quotation marks in it are escaped.
    """
    image, mask = f'"image": "{PHOTOGRAPHS}/{sha256}.', f'"class_mask": "{MASKS}/{sha256}.'
    return image.encode() in manifest or mask.encode() in manifest


def create_version(
    connection: Connection, data_set_id: int, snapshot: Snapshot, note: str, who: str, now: datetime
) -> int:
    """Adds a version; returns its number, or that of the latest one if its content is equal.

    The row of the manifest's file must exist: see `DataSetStore.write`.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    name, latest = find_data_set(connection, data_set_id)["name"], _newest(connection, data_set_id, 1)
    digest = snapshot.manifest.sha256
    if latest and (bytes(latest[0]["digest"]), classes_of(latest[0])) == (digest, snapshot.classes):
        return int(latest[0]["number"])
    number = int(latest[0]["number"]) + 1 if latest else 1
    row = {
        "data_set_id": data_set_id,
        "number": number,
        "created_at": now,
        "created_by": who,
        "note": note,
        "digest": digest,
        "classes": json.dumps(snapshot.classes, ensure_ascii=False),
        "counts": snapshot.counts.model_dump_json(),
    }
    connection.execute(insert(data_set_versions), row)
    facts = {"data_set": name, "version": number, "digest": digest.hex()}
    add_audit_entry(connection, who, "make a version of a data set", after=facts)
    return number


def find_version(connection: Connection, data_set_id: int, number: int) -> RowMapping:
    """Returns the row of a version; raises a RequestError, 404, if it does not exist."""
    statement = select(data_set_versions).where(table.data_set_id == data_set_id, table.number == number)
    row = connection.execute(statement).mappings().first()
    if row is None:
        find_data_set(connection, data_set_id)
        raise RequestError(
            404, "version_not_found", f"The data set {data_set_id} has no version {number}. Check the number."
        )
    return row


def show_version(connection: Connection, data_set_id: int, number: int) -> Version:
    """Returns the answer about a version; raises as `find_version`."""
    return _make_version(find_version(connection, data_set_id, number))


def list_versions(connection: Connection, data_set_id: int) -> VersionList:
    """Returns the newest versions of a data set, the newest first; raises as `find_data_set`."""
    find_data_set(connection, data_set_id)
    rows = _newest(connection, data_set_id, MAX_LISTED)
    return VersionList(versions=[_make_version(row) for row in rows])


def _newest(connection: Connection, data_set_id: int, limit: int) -> Sequence[RowMapping]:
    statement = select(data_set_versions).where(table.data_set_id == data_set_id)
    return connection.execute(statement.order_by(table.number.desc()).limit(limit)).mappings().all()


def _make_version(row: Mapping[Any, Any]) -> Version:
    names = ("number", "created_at", "created_by", "note")
    return Version(
        **{name: row[name] for name in names},
        digest=bytes(row["digest"]).hex(),
        classes=classes_of(row),
        counts=VersionCounts.model_validate_json(row["counts"]),
    )


@dataclass(frozen=True)
class ExportedVersion:
    """What an export of a version needs beside its files.

    `digest` is that of its manifest; `sizes` are height and width of each photograph by its digest, px.
    """

    digest: bytes
    classes: Sequence[str]
    sizes: Mapping[bytes, tuple[int, int]]


def find_exported(connection: Connection, data_set_id: int, number: int) -> ExportedVersion:
    """Returns what an export of a version needs; raises as `find_version`."""
    row, files = find_version(connection, data_set_id, number), data_set_files.c
    statement = select(files.sha256, files.height, files.width).join_from(
        data_set_photographs, data_set_files, files.sha256 == photographs.sha256
    )
    rows = connection.execute(statement.where(photographs.data_set_id == data_set_id))
    sizes = {bytes(sha256): (height, width) for sha256, height, width in rows}
    return ExportedVersion(bytes(row["digest"]), classes_of(row), sizes)


def find_file(connection: Connection, data_set_id: int, sha256: bytes) -> RowMapping:
    """Returns the row of a file of the data set: of a photograph, or of a mask.

    Raises:
        RequestError: 404 if the data set does not have it.
    """
    ours = photographs.data_set_id == data_set_id
    is_photograph = select(photographs.id).where(ours, photographs.sha256 == sha256)
    is_mask = select(photographs.id).join_from(
        data_set_annotations, data_set_photographs, data_set_annotations.c.photograph_id == photographs.id
    )
    is_mask = is_mask.where(ours, data_set_annotations.c.mask == sha256)
    columns = [column for column in data_set_files.c if column.name != "thumbnail"]
    statement = select(*columns).where(
        data_set_files.c.sha256 == sha256, is_photograph.exists() | is_mask.exists()
    )
    row = connection.execute(statement).mappings().first()
    if row is None:
        detail = f"The data set {data_set_id} has no file {sha256.hex()}. See its manifest."
        raise RequestError(404, "file_not_found", detail)
    return row
