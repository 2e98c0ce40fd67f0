"""Deletion of a data set with all that belongs to it, and of files that no data set has any more."""

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Connection, Engine, Exists, Table, delete, func, insert, select

from api.data_sets.definitions import find_data_set
from api.data_sets.tables import (
    data_set_annotations,
    data_set_files,
    data_set_photographs,
    data_set_proposals,
    data_set_versions,
    data_sets,
    deleted_data_sets,
)
from api.database.database import write_transaction
from api.errors import RequestError
from api.jobs.stored_jobs import list_running
from api.jobs.tables import jobs
from api.record.queries import add_audit_entry
from api.record.storage.pictures import PictureStore

BATCH = 500
"""Files that are deleted in one transaction: inspections wait meanwhile."""
files, photographs = data_set_files.c, data_set_photographs.c


def delete_data_set(connection: Connection, data_set_id: int, name: str, who: str, now: datetime) -> None:
    """Deletes a data set with photographs, annotations and versions; `delete_unused_files` deletes the files.

    Needs a writing transaction. `name` is the name of the data set, as the person who deletes it has typed
    it.

    Raises:
        RequestError: 404 if it does not exist, 400 if it has another name, 409 if a job works on
            it.
    """
    row = find_data_set(connection, data_set_id)
    if name != row["name"]:
        detail = f"The name is {name[:80]!r}. Expected that of the data set to be deleted, {row['name']!r}."
        raise RequestError(400, "name_differs", detail)
    if running := list_running(connection, data_set_id, now):
        detail = (
            f"A job of the data set is running: {running[0]}. Wait for its end, then delete the data set."
        )
        raise RequestError(409, "data_set_busy", detail)
    of_set = photographs.data_set_id == data_set_id
    count = connection.execute(select(func.count()).where(of_set)).scalar_one()
    deleted = {"id": data_set_id, "name": row["name"], "at": now, "who": who}
    connection.execute(insert(deleted_data_sets), deleted)  # the triggers allow the rest from now on
    ours = select(photographs.id).where(of_set)
    connection.execute(delete(data_set_annotations).where(data_set_annotations.c.photograph_id.in_(ours)))
    for table in (data_set_proposals, jobs, data_set_versions, data_set_photographs):
        connection.execute(delete(table).where(table.c.data_set_id == data_set_id))
    connection.execute(delete(data_sets).where(data_sets.c.id == data_set_id))
    before = {"data_set": data_set_id, "name": row["name"], "photographs": count}
    add_audit_entry(connection, who, "delete a data set", before=before)


# === Files ===


def delete_unused_files(engine: Engine, stored: PictureStore, after: bytes = b"") -> bytes | None:
    """Deletes some files that no photograph, annotation or version has.

    The files are deleted within the transaction: an upload of the same file waits for it and stores its file
    again. A file whose row survives a failure has no use and is found again. `after` is the last digest of
    the call before.

    Returns:
        The last digest, for the next call; None after the last ones.
    """
    with write_transaction(engine) as connection:
        unused = select(files.sha256).where(files.sha256 > after, *(~used for used in _uses()))
        chosen = unused.order_by(files.sha256).limit(BATCH)
        digests = [bytes(sha256) for sha256 in connection.execute(chosen).scalars()]
        connection.execute(delete(data_set_files).where(files.sha256.in_(digests)))
        stored.delete(*digests)
    return digests[-1] if len(digests) == BATCH else None


def _uses() -> Iterator[Exists]:
    columns: tuple[tuple[Table, str], ...] = (
        (data_set_photographs, "sha256"),
        (data_set_photographs, "mask"),
        (data_set_annotations, "mask"),
        (data_set_versions, "digest"),
    )
    for table, name in columns:
        yield select(table.c.id).where(table.c[name] == files.sha256).exists()
