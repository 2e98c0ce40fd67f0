"""The data sets as the routes use them: reading, writing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar, TypeVarTuple

from sqlalchemy import Connection, Engine

from api.data_sets.deletion import delete_unused_files
from api.data_sets.free_space import FreeSpace
from api.data_sets.new_file import NewFile
from api.data_sets.photographs import find_missing
from api.data_sets.tables import data_set_files
from api.errors import RequestError
from api.record.record import Record
from api.record.record_files import RecordFiles
from api.record.settings import RecordSettings
from api.record.storage.pictures import PictureStore
from api.record.stored_files import store_with_rows

Args = TypeVarTuple("Args")
T = TypeVar("T")
FOLDER = "data_sets"
"""Of the files, in the folder of the record or below the URL of its pictures."""
logger = logging.getLogger(__name__)
MAX_DECODINGS = 1
"""Pictures of data sets that are decoded at the same time: inspections need the processors and the memory."""


class DataSetStore:
    """Data sets beside the record: rows in its database, files in a store of their own.

    Every coroutine raises RequestError 503 `record_unavailable` if database or files cannot be used now.

    Nothing is read or written before they are used. `check_unused` raises a RequestError if something else
    needs the data set with this id.
    """

    def __init__(
        self,
        settings: RecordSettings,
        record: Record,
        check_unused: Callable[[Connection, int], None] = lambda _connection, _data_set_id: None,
    ) -> None:
        self._record, self.check_unused = record, check_unused
        self._files = RecordFiles(record, settings, FOLDER, data_set_files)
        self._free_share = settings.record_free_share
        self._decoding = asyncio.Semaphore(MAX_DECODINGS)
        self._manifest = (b"", b"")
        """Digest and content of the manifest that was read last."""

    async def read(self, query: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """Runs a query in a thread and returns its result."""
        return await self._record.read(query, *args)

    async def write(
        self, change: Callable[[Connection, *Args], T], *args: *Args, files: Sequence[NewFile] = ()
    ) -> T:
        """Stores files and runs a change that names them, in one transaction: both stay, or neither."""
        stored = await self._files.open()

        def make(engine: Engine) -> T:
            return store_with_rows(
                engine, stored, files, data_set_files, lambda connection: change(connection, *args)
            )

        return await self._record.write_all(make)

    async def check_space(self, data_set_id: int, files: Sequence[NewFile], what: str) -> None:
        """Checks that photographs which a data set lacks leave the part of the disk free that imports leave.

        `what` names the files in a message: `photograph`.

        Raises:
            RequestError: 404 if the data set does not exist, 507 `no_space`.
        """
        known = await self.read(find_missing, data_set_id, [file.sha256 for file in files])
        needed = sum(file.bytes for file in files if file.sha256.hex() in known.missing)
        stored = await self._files.open()
        space = await self._record.read_all(lambda _: stored.space())
        if needed and space is not None:
            FreeSpace(space, self._free_share).check(needed, what)

    async def read_file(self, sha256: bytes) -> bytes:
        """Returns a file; raises a RequestError, 404 `file_lost` if the store does not have it any more."""
        return await self._files.read(sha256)

    async def read_manifest(self, sha256: bytes) -> bytes:
        """Returns the manifest of a version; the last one stays in memory: workers need it for each file.

        Raises:
            RequestError: As `read_file`.
        """
        known, content = self._manifest
        if known != sha256:
            content = await self.read_file(sha256)
            self._manifest = (sha256, content)
        return content

    async def delete_unused(self) -> None:
        """Deletes files of deleted data sets; a failure is logged, and made up for by the next call."""
        stored, after = await self._files.open(), b""
        try:
            while True:
                last = await self._record.write_all(partial(delete_unused_files, stored=stored, after=after))
                if last is None:
                    return
                after = last
        except RequestError as error:
            logger.warning("Files of deleted data sets were not deleted: %s", error)

    async def stream(self, make: Callable[[Engine, PictureStore], Iterator[bytes]]) -> AsyncIterator[bytes]:
        """Returns the chunks that `make` yields, read in threads; it returns when the first one is read."""
        stored = await self._files.open()
        return await self._record.stream(lambda engine: make(engine, stored))

    async def decode(self, function: Callable[[], T]) -> T:
        """Runs a function that decodes or encodes a picture in a thread, few at the same time."""
        async with self._decoding:
            return await asyncio.to_thread(function)
