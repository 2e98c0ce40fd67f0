"""Training jobs as the routes use them: rows in the database of the record, chunks of files in a store."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar, TypeVarTuple

from sqlalchemy import Connection, Engine

from api.data_sets.new_file import NewContent
from api.database.database import write_transaction
from api.errors import RequestError
from api.record.queries import insert_into
from api.record.record import Record
from api.record.record_files import RecordFiles
from api.record.settings import RecordSettings
from api.record.storage.pictures import PictureStore
from api.record.stored_files import store_with_rows
from api.training.chunk_limits import check_space
from api.training.file_sets import delete_chunk_rows, find_missing, find_unused, forget_old_uploads
from api.training.tables import training_chunks, training_uploads

Args = TypeVarTuple("Args")
T = TypeVar("T")
FOLDER = "training"
"""Of the chunks, in the folder of the record or below the URL of its pictures."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NewChunk(NewContent):
    """A chunk that a worker sends for a job, with the name of its key."""

    job_id: int
    key: str
    sent_at: datetime


class TrainingStore:
    """Training jobs beside the record: rows in its database, chunks of files in a store of their own.

    Every coroutine raises RequestError 503 `record_unavailable` if database or store cannot be used now.

    Nothing is read or written before they are used.

    Attributes:
        using: Held while a model is put into use, and while a job is deleted: not both at the same time.
    """

    def __init__(self, settings: RecordSettings, record: Record) -> None:
        self._record = record
        self._settings = settings
        self._chunks = RecordFiles(record, settings, FOLDER, training_chunks)
        self.using = asyncio.Lock()

    async def read(self, query: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """Runs a query in a thread and returns its result."""
        return await self._record.read(query, *args)

    async def write(self, change: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """Runs a change in a thread, in one transaction, and returns its result."""
        return await self._record.write(change, *args)

    async def store_chunk(self, chunk: NewChunk, check: Callable[[Connection], object]) -> None:
        """Stores a chunk durably if `check` does not raise and there is space for it.

        Raises:
            RequestError: 503 `no_space`, see `check_space`.
        """
        stored, settings = await self._chunks.open(), self._settings

        def check_all(connection: Connection) -> None:
            check(connection)
            free_share, retry_after_s = settings.record_free_share, settings.retry_after_s
            check_space(connection, chunk.key, stored.space(), free_share, retry_after_s)

        await self._record.write_all(lambda engine: store_chunk(engine, stored, chunk, check_all))

    async def find_missing(self, job_id: int, digests: Sequence[bytes]) -> list[bytes]:
        """Returns those chunks that a job does not have."""
        stored = await self._chunks.open()

        def find(connection: Connection) -> list[bytes]:
            missing = set(find_missing(connection, job_id, digests))
            return [one for one in dict.fromkeys(digests) if one in missing or not stored.contains(one)]

        return await self._record.read(find)

    async def read_chunk(self, digest: bytes) -> bytes:
        """Returns a chunk; raises a RequestError, 404 `file_lost` if the store does not have it any more."""
        return await self._chunks.read(digest)

    async def delete_unused(self, now: datetime) -> None:
        """Deletes chunks of former checkpoints and deleted jobs; a failure is logged, and made up for by the
        next call.
        """
        stored = await self._chunks.open()
        try:
            while await self._record.write_all(lambda engine: delete_unused_chunks(engine, stored, now)):
                pass
        except RequestError as error:
            logger.warning("Files of former checkpoints and deleted jobs were not deleted: %s", error)

    async def run_in_thread(self, function: Callable[[], T]) -> T:
        """Runs a slow function in a thread."""
        return await self._record.run_in_thread(function)


def store_chunk(
    engine: Engine, stored: PictureStore, chunk: NewChunk, check: Callable[[Connection], object]
) -> None:
    """Stores a chunk and its rows, all or nothing; one that was sent before for the job counts as new."""

    def change(connection: Connection) -> None:
        statement = insert_into(connection.dialect.name, training_uploads)
        values = {"key": chunk.key, "sent_at": chunk.sent_at}
        statement = statement.on_conflict_do_update(index_elements=["job_id", "chunk"], set_=values)
        connection.execute(statement, {"job_id": chunk.job_id, "chunk": chunk.sha256, **values})
        check(connection)

    store_with_rows(engine, stored, [chunk], training_chunks, change)


def delete_unused_chunks(engine: Engine, stored: PictureStore, now: datetime) -> int:
    """Deletes chunks that no file has, and no upload of the last hours; returns their number.

    The files are deleted within the transaction: an upload of the same chunk waits for it and stores its file
    again.
    """
    with write_transaction(engine) as connection:
        forget_old_uploads(connection, now)
        unused = find_unused(connection)
        delete_chunk_rows(connection, unused)
        stored.delete(*unused)
    return len(unused)
