"""Files beside the record, each stored before its row.

Until the row is committed, the file has a mark. After a crash, the first use deletes marked files without a
row. The retention rules of the record do not concern these files.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from sqlalchemy import Connection, Engine, Table, select
from sqlalchemy.exc import SQLAlchemyError

from api.database.database import write_transaction
from api.record.queries import insert_into
from api.record.storage.pictures import STORE_ID, PictureStore
from api.record.tables import store
from segdec.errors import ConfigError

T = TypeVar("T")
logger = logging.getLogger(__name__)


class StorableFile(Protocol):
    """A file to be stored; it has an attribute for each column of its table."""

    @property
    def data(self) -> bytes:
        """Its content."""

    @property
    def sha256(self) -> bytes:
        """Digest of the content."""


def store_with_rows(
    engine: Engine,
    stored: PictureStore,
    files: Sequence[StorableFile],
    table: Table,
    change: Callable[[Connection], T],
) -> T:
    """Stores files and makes a change that names them, in one transaction: both stay, or neither.

    The rows of the files are in `table`.

    Raises:
        SQLAlchemyError, OSError: If database or store cannot be written.
    """
    digests = [file.sha256 for file in files]
    try:
        for file in files:
            stored.put(file.sha256, file.data)
        with write_transaction(engine) as connection:
            _add_rows(connection, files, table)
            for file in files:
                if not stored.contains(file.sha256):  # another service has deleted it meanwhile
                    stored.put(file.sha256, file.data)
            result = change(connection)
    except BaseException:
        _discard(engine, stored, digests, table)
        raise
    try:
        stored.clear_marks(*digests)
    except OSError as error:  # the next start removes the mark
        logger.warning("The mark of a file was not removed: %s", error)
    return result


def _add_rows(connection: Connection, files: Sequence[StorableFile], table: Table) -> None:
    if files:
        statement = insert_into(connection.dialect.name, table).on_conflict_do_nothing()
        rows = [{column.name: getattr(file, column.name) for column in table.c} for file in files]
        connection.execute(statement, rows)


def _discard(engine: Engine, stored: PictureStore, digests: Sequence[bytes], table: Table) -> None:
    """Deletes the files of a failed change; if that fails too, the next start does it."""
    if digests:
        with suppress(SQLAlchemyError, OSError), write_transaction(engine) as connection:
            remove_orphans(connection, stored, digests, table)


def remove_orphans(
    connection: Connection, stored: PictureStore, marked: Sequence[bytes], table: Table
) -> None:
    """Deletes those marked files that have no row, and clears the marks of the others."""
    column = table.c.sha256
    known = {
        sha256
        for sha256 in marked
        if connection.execute(select(column).where(column == sha256)).first() is not None
    }
    stored.clear_marks(*known)
    stored.delete(*set(marked) - known)


def check_same_record(connection: Connection, stored: PictureStore, table: Table) -> None:
    """Rejects files of another record, which `remove_orphans` would delete; a new store gets the record's id.

    Raises:
        ConfigError: If the id in the store is not that of the record.
    """
    record_id, files_id = connection.execute(select(store.c.id)).scalar_one(), stored.read_id()
    if files_id is None and connection.execute(select(table.c.sha256).limit(1)).first() is None:
        stored.write_id(files_id := record_id)
    if files_id != record_id:
        raise ConfigError(
            f"The files in {stored.location} belong to the record {files_id}, the database to "
            f"{record_id}. Expected both from one record: restore both from one backup. If they do belong "
            f"together, write {record_id} into {stored.location}/{STORE_ID}."
        )
