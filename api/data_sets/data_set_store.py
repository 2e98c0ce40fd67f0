"""The data sets as the routes use them: opening, reading, writing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TypeVar, TypeVarTuple

from sqlalchemy import Connection, Engine

from api.data_sets.stored_files import NewFile, check_same_record, remove_orphans, store_with_rows
from api.errors import RequestError, service_unavailable
from api.records.database import write_transaction
from api.records.record import Record
from api.records.recording import open_picture_store
from api.records.storage.pictures import FolderPictures, PictureStore
from api.settings import Settings
from segdec.errors import ConfigError

Args = TypeVarTuple("Args")
T = TypeVar("T")
FOLDER = "data_sets"
"""Of the files, in the folder of the record or below the URL of its pictures."""
MAX_DECODINGS = 1
"""Pictures of data sets that are decoded at the same time: inspections need the processors and the memory."""
logger = logging.getLogger(__name__)


class DataSetStore:
    """Data sets beside the record: rows in its database, files in a store of their own.

    Every coroutine raises RequestError 503 `record_unavailable` if database or files cannot be used now.

    Args:
        record: The record.
        open_files: Returns the store of the files.
        retry_after_s: `Retry-After` of answers while the files cannot be used.
    """

    def __init__(self, record: Record, open_files: Callable[[], PictureStore], retry_after_s: int) -> None:
        self._record, self._open_files, self._retry_after_s = record, open_files, retry_after_s
        self._opening, self._decoding = asyncio.Lock(), asyncio.Semaphore(MAX_DECODINGS)
        self._files: PictureStore | None = None

    async def read(self, query: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """Runs a query in a thread and returns its result."""
        return await self._record.read(query, *args)

    async def write(
        self, change: Callable[[Connection, *Args], T], *args: *Args, files: Sequence[NewFile] = ()
    ) -> T:
        """Stores files and runs a change that names them, in one transaction: both stay, or neither."""
        stored = await self._open()

        def make(engine: Engine) -> T:
            return store_with_rows(engine, stored, files, lambda connection: change(connection, *args))

        return await self._record.write_all(make)

    async def read_file(self, sha256: bytes) -> bytes:
        """Returns a file.

        Raises:
            RequestError: 404 `file_lost` if the store does not have it any more.
        """
        stored = await self._open()
        return await self._record.run_in_thread(lambda: get_file(stored, sha256))

    async def stream(self, make: Callable[[Engine, PictureStore], Iterator[bytes]]) -> AsyncIterator[bytes]:
        """Returns the chunks that `make` yields, read in threads; it returns when the first one is read."""
        stored = await self._open()
        return await self._record.stream(lambda engine: make(engine, stored))

    async def decode(self, function: Callable[[], T]) -> T:
        """Runs a function that decodes or encodes a picture in a thread, few at the same time."""
        async with self._decoding:
            return await asyncio.to_thread(function)

    async def _open(self) -> PictureStore:
        """Returns the store of the files; the first call checks it and removes files without a row."""
        async with self._opening:
            if self._files is None:
                try:
                    self._files = await self._record.read_all(self._initialize)
                except ConfigError as error:
                    logger.error("The data sets cannot be used: %s", error)
                    detail = (
                        "The data sets cannot be used now: their files belong to another record, see the log."
                    )
                    raise service_unavailable("record_unavailable", detail, self._retry_after_s) from error
            return self._files

    def _initialize(self, engine: Engine) -> PictureStore:
        stored = self._open_files()
        with write_transaction(engine) as connection:
            check_same_record(connection, stored)
            remove_orphans(connection, stored, list(stored.marked()))
        return stored


def get_file(stored: PictureStore, sha256: bytes) -> bytes:
    """Returns a file of the store.

    Raises:
        RequestError: 404 `file_lost` if it does not exist.
    """
    found = stored.get(sha256)
    if found is None:
        detail = f"The file {sha256.hex()} is lost: the store does not have it. Restore it from a backup."
        raise RequestError(404, "file_lost", detail)
    return found


def create_data_set_store(settings: Settings, record: Record) -> DataSetStore:
    """Creates the data sets beside a record; nothing is read or written before they are used."""

    def open_files() -> PictureStore:
        if settings.record_pictures is None:
            return FolderPictures(settings.record_folder / FOLDER)
        pictures = open_picture_store(f"{settings.record_pictures.rstrip('/')}/{FOLDER}")
        assert pictures is not None
        return pictures

    return DataSetStore(record, open_files, settings.retry_after_s)
