"""Stores of files beside the record: those of data sets, and those of training jobs."""

import asyncio
import logging

from sqlalchemy import Engine, Table, select

from api.database.database import write_transaction
from api.errors import RequestError, service_unavailable
from api.record.record import Record
from api.record.recording import open_picture_store
from api.record.settings import RecordSettings
from api.record.storage.pictures import FolderPictures, PictureStore
from api.record.stored_files import check_same_record, remove_orphans
from api.record.tables import store
from segdec.errors import ConfigError

logger = logging.getLogger(__name__)


class RecordFiles:
    """Files in a folder of the record, or below the URL of its pictures; the first use checks them.

    Args:
        record: The record.
        settings: The settings of the service.
        folder: Name of the folder.
        table: The rows of the files.
    """

    def __init__(self, record: Record, settings: RecordSettings, folder: str, table: Table) -> None:
        self._record, self._settings, self._folder, self._table = record, settings, folder, table
        self._opening = asyncio.Lock()
        self._store: PictureStore | None = None

    async def open(self) -> PictureStore:
        """Returns the store; the first call checks it and deletes files without a row.

        Raises:
            RequestError: 503 if it cannot be used now.
        """
        async with self._opening:
            if self._store is None:
                try:
                    self._store = await self._record.read_all(self._initialize)
                except ConfigError as error:
                    logger.error("The files of %s cannot be used: %s", self._folder, error)
                    detail = "Files of the service belong to another record, see the log."
                    retry_after_s = self._settings.retry_after_s
                    raise service_unavailable("record_unavailable", detail, retry_after_s) from error
            return self._store

    async def read(self, sha256: bytes) -> bytes:
        """Returns a file.

        Raises:
            RequestError: 404 `file_lost` if the store does not have it any more; 503 as `open`.
        """
        stored = await self.open()
        return await self._record.run_in_thread(lambda: get_file(stored, sha256))

    def _initialize(self, engine: Engine) -> PictureStore:
        """Writes only if something has to change: files can be read while nothing can be written."""
        stored = self._make_store()
        with engine.connect() as connection:
            is_checked = stored.read_id() == connection.execute(select(store.c.id)).scalar()
        if is_checked and next(iter(stored.marked()), None) is None:
            return stored
        with write_transaction(engine) as connection:
            check_same_record(connection, stored, self._table)
            remove_orphans(connection, stored, list(stored.marked()), self._table)
        return stored

    def _make_store(self) -> PictureStore:
        pictures = self._settings.record_pictures
        if pictures is None:
            return FolderPictures(self._settings.record_folder / self._folder)
        stored = open_picture_store(f"{pictures.rstrip('/')}/{self._folder}")
        assert stored is not None
        return stored


def get_file(stored: PictureStore, sha256: bytes) -> bytes:
    """Returns a file of a store.

    Raises:
        RequestError: 404 `file_lost` if it does not exist.
    """
    data = stored.get(sha256)
    if data is None:
        detail = f"The file {sha256.hex()} is lost: the store does not have it. Restore it from a backup."
        raise RequestError(404, "file_lost", detail)
    return data
