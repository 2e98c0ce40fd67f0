"""Prepares the database and the pictures of a record at the start of the service."""

import hashlib
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, Engine, insert, select, update

from api.database.database import migrate, write_transaction
from api.database.database_files import files_of
from api.record import queries
from api.record.storage.pictures import STORE_ID, FolderPictures, PictureStore
from api.record.tables import store
from api.record.writer import remove_orphans
from segdec.errors import ConfigError

DATABASE = "record.db"
PICTURES = "pictures"


def database_url(url: str | None, folder: Path) -> str:
    """Returns `url`, or the URL of the SQLite file in the record's folder if `url` is None."""
    return url or f"sqlite:///{folder / DATABASE}"


def initialize_record(engine: Engine, folder: Path, pictures: PictureStore | None) -> PictureStore:
    """Migrates the database and checks that the pictures belong to it.

    It writes only if something has to change: a record can be read while nothing can be written. A SQLite
    database accepts only connections to this record from then on.

    Raises:
        ConfigError: If database and pictures do not belong together, or a newer version wrote them.
        SQLAlchemyError, OSError: If the database or the pictures cannot be reached.
    """
    pictures, files = pictures or FolderPictures(folder / PICTURES), files_of(engine)
    if files is not None and files.is_new():
        _check_no_pictures(pictures)
    migrate(engine)
    with engine.connect() as connection:
        record_id: str | None = connection.execute(select(store.c.id)).scalar()
    if record_id is None or record_id != pictures.read_id():
        with write_transaction(engine) as connection:
            record_id = _check_same_record(connection, pictures)
    if files is not None:
        files.record_id = record_id
    return pictures


def remove_orphaned_pictures(engine: Engine, pictures: PictureStore) -> None:
    """Removes pictures without a row, which a crash has left. Raises as `check_writable`."""
    with write_transaction(engine) as connection:
        remove_orphans(connection, pictures, set(pictures.marked()))


def check_writable(engine: Engine, pictures: PictureStore) -> None:
    """Stores and deletes a small picture, and writes a row that does not change.

    Raises:
        SQLAlchemyError, OSError: If the database or the pictures cannot be written.
    """
    data = uuid4().bytes
    sha256 = hashlib.sha256(data).digest()
    with write_transaction(engine) as connection:
        connection.execute(update(store).values(id=store.c.id))
        pictures.put(sha256, data)
        pictures.delete(sha256)


def _check_no_pictures(pictures: PictureStore) -> None:
    if not pictures.is_empty():
        raise ConfigError(
            f"The record's database is missing or empty, but {pictures.location} contains pictures of the "
            f"record {pictures.read_id()}. Restore the database (docs/record.md, Backup and restore), or "
            "move the pictures away to begin a new record."
        )


def _check_same_record(connection: Connection, pictures: PictureStore) -> str:
    """Rejects pictures of another database, which `remove_orphans` would delete; returns the record's id."""
    database_id: str | None = connection.execute(select(store.c.id)).scalar()
    store_id = pictures.read_id()
    if database_id is None:
        _check_no_pictures(pictures)
        database_id = store_id or uuid4().hex
        connection.execute(insert(store), {"id": database_id, "bytes": 0})
    if store_id is None and not queries.has_kept_pictures(connection):
        pictures.write_id(store_id := database_id)
    if database_id != store_id:
        raise ConfigError(
            f"The pictures in {pictures.location} belong to the record {store_id}, the database to "
            f"{database_id}. Expected pictures and a database of one record. If they do belong together, "
            f"write {database_id} into {pictures.location}/{STORE_ID}."
        )
    return database_id
