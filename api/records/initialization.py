"""Where a record lies, and what a start does before anything is kept in it."""

from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, Engine, insert, select

from api.records import queries
from api.records.database import migrate, writing
from api.records.storage.pictures import STORE_ID, FolderPictures, PictureStore
from api.records.tables import store
from api.records.writer import remove_orphans
from segdec.errors import ConfigError

DATABASE = "record.db"
PICTURES = "pictures"


def database_url(url: str | None, folder: Path) -> str:
    """Returns where the rows of a record lie: at `url`, or in its folder."""
    return url or f"sqlite:///{folder / DATABASE}"


def initialize_record(engine: Engine, folder: Path, place: PictureStore | None) -> PictureStore:
    """Makes the tables where they are missing, and removes what a killed service left.

    Args:
        engine: Of the database.
        folder: Of the record.
        place: Of the pictures; None = in `folder`.

    Raises:
        ConfigError: If database and pictures do not belong together, or a newer version wrote them.
        SQLAlchemyError: If the database cannot be reached.
        OSError: If the pictures cannot.
    """
    migrate(engine)
    pictures = place or FolderPictures(folder / PICTURES)
    with writing(engine) as connection:
        _match(connection, pictures)
        remove_orphans(connection, pictures, set(pictures.marked()))
    return pictures


def _match(connection: Connection, pictures: PictureStore) -> None:
    """Refuses pictures of another database: what has no row in this one would be removed."""
    known: str | None = connection.execute(select(store.c.id)).scalar()
    beside = pictures.read_id()
    if known is None:
        known = beside or uuid4().hex
        connection.execute(insert(store), {"id": known, "bytes": 0})
    if beside is None and not queries.has_kept_pictures(connection):
        pictures.write_id(beside := known)
    if known != beside:
        raise ConfigError(
            f"The pictures in {pictures.place} belong to the record {beside}, the database to {known}. "
            "Expected pictures and a database of one record. If they do belong together, write "
            f"{known} into {pictures.place}/{STORE_ID}."
        )
