"""The record behind the routes: opens it, keeps inspections in it, and reads from it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from api.errors import RequestError, service_unavailable
from api.inspection.deadlines import deadline_error
from api.records import queries
from api.records.audit import AuditEntry
from api.records.database import open_database, writing
from api.records.initialization import database_url, initialize_record
from api.records.inspection import Inspection, Row, StoredInspection
from api.records.line.uninspected_log import UninspectedLog
from api.records.outbox import Outbox
from api.records.record_metrics import RecordMetrics
from api.records.review.review_queue import dequeue_pictures
from api.records.storage.pictures import PictureStore
from api.records.storage.reserved_space import ReservedSpace
from api.records.storage.retention import ClockMonitor, Retention, RetentionRules
from api.records.writer import RecordUnavailableError, RecordWriter, describe, is_full
from segdec.errors import ConfigError

P = ParamSpec("P")
T = TypeVar("T")

RESERVED_SPACE_FILE = "ballast"
READERS = 4
"""Threads that read: no page of a reviewer waits for another's, and none takes the cores from the network."""
REOPEN_S = 1.0
"""Seconds after a failure in which nothing is tried again."""
ENDS = {
    "expiring": "is being deleted, by the rules of retention or by a person",
    "expired": "was deleted, by the rules of retention or by a person",
    "lost": "is lost: its file is not where it was stored",
}
logger = logging.getLogger(__name__)


class Record:
    """The inspections that were kept, and those to come.

    Args:
        url: Of the database; None = a file in `folder`.
        folder: Holds what is named no place of its own.
        rules: How long pictures are kept.
        retry_after_s: Seconds that a client is asked to wait while the record cannot be written.
        metrics: Told what is kept, deleted and reviewed.
        outbox: Takes what is to be told to others.
        pictures: Where they go; None = into `folder`.

    Attributes:
        metrics, outbox: The same.
        misses: What was not inspected.

    Raises:
        ConfigError: If `url` names no database.
    """

    def __init__(
        self,
        url: str | None,
        folder: Path,
        rules: RetentionRules,
        retry_after_s: int,
        metrics: RecordMetrics,
        outbox: Outbox,
        pictures: PictureStore | None = None,
    ) -> None:
        self.outbox = outbox
        self._engine = open_database(database_url(url, folder))
        self.misses = UninspectedLog(self._engine)
        self._folder, self._rules, self._retry_after_s = folder, rules, retry_after_s
        self.metrics, self._place = metrics, pictures
        self._failed_at: float | None = None
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="record-reader")
        self._opening = asyncio.Lock()
        self._writer: RecordWriter | None = None
        self._pictures: PictureStore | None = None
        self._retention: Retention | None = None

    async def open(self) -> None:
        """Makes the tables where they are missing, and removes what a killed service left.

        Raises:
            ConfigError: If database and pictures do not belong together, or a newer version wrote them.
            RequestError: 503 if it cannot be reached or written now.
        """
        async with self._opening:
            if self._writer is not None:
                return
            self.raise_if_backing_off()  # who waited for the attempt of another one makes none of his own
            try:
                pictures = await asyncio.to_thread(initialize_record, self._engine, self._folder, self._place)
                retention = await asyncio.to_thread(self._make_retention, pictures)
            except (SQLAlchemyError, OSError) as error:
                self._note_closed(error)
                raise self._unavailable(describe(error)) from error
            self._pictures, self._retention = pictures, retention
            self._writer = RecordWriter(self._engine, pictures, self.metrics, self.outbox, self._note)
            retention.start()
            self.misses.start()
            self._failed_at = None
            self.metrics.set_usable(True)

    def _note_closed(self, error: Exception) -> None:
        self._failed_at = time.monotonic()
        self.metrics.set_usable(False)
        logger.error("The record cannot be opened: %s", error)

    def _make_retention(self, pictures: PictureStore) -> Retention:
        with self._engine.connect() as connection:
            newest = queries.newest_hour(connection)
        clock = ClockMonitor(None if newest is None else newest.timestamp())
        reserved_space = ReservedSpace(self._folder / RESERVED_SPACE_FILE)
        return Retention(self._engine, pictures, self._rules, clock, reserved_space, self.metrics)

    @property
    def is_usable(self) -> bool:
        """Whether inspections can be kept, as far as is known."""
        return self._writer is not None and self._failed_at is None

    async def check(self) -> None:
        """Refuses at once for a moment after a failure; then the next one tries.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        self.raise_if_backing_off()
        if self._writer is None:
            try:
                await self.open()
            except ConfigError as error:  # at a start it would have ended it
                self._note_closed(error)
                raise self._unavailable("it cannot be opened, and the log says why") from error

    def raise_if_backing_off(self) -> None:
        if self._failed_at is not None and time.monotonic() - self._failed_at < REOPEN_S:
            raise self._unavailable("it failed a moment ago")

    async def store(self, inspection: Inspection, deadline: float) -> StoredInspection:
        """Stores an inspection; when this returns, row and picture survive a loss of power.

        Args:
            inspection: What is to be kept.
            deadline: `time.perf_counter` at which it is given up. It may be kept all the same.

        Raises:
            RequestError: 503 `record_unavailable` if it cannot be stored, 504 at the deadline.
        """
        await self.check()
        assert self._writer is not None
        future = asyncio.wrap_future(self._writer.store(inspection))
        try:
            async with asyncio.timeout(deadline - time.perf_counter()):
                return await future
        except TimeoutError:
            raise deadline_error() from None
        except RecordUnavailableError as error:
            raise self._unavailable(str(error)) from error

    async def read(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Returns what `query` answers, asked in a thread.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        await self.check()
        return await self.read_during_outage(query, *args, **kwargs)

    async def read_during_outage(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `read`, also a moment after a failure to write: a full disk can be read.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        if self._writer is None:
            await self.check()

        def ask() -> T:
            with self._engine.connect() as connection:
                return query(connection, *args, **kwargs)

        return await self.work(ask)

    async def write(
        self, change: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Returns what `change` answers, which it does in a thread and in one transaction, or not at all.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        await self.check()

        def do() -> T:
            with writing(self._engine) as connection:
                return change(connection, *args, **kwargs)

        return await self.work(do)

    async def change_with_audit(
        self, line: AuditEntry, make: Callable[[], None], take_back: Callable[[], None]
    ) -> None:
        """Makes a change outside of the record, and its line in the audit: both or none.

        Arguments as for `Recording.change`.

        Raises:
            RequestError: As `make`; 503 `record_unavailable`.
        """
        await self.check()

        def change() -> None:
            with ExitStack() as undo:
                with writing(self._engine) as connection:
                    queries.add_audit_entry(
                        connection, line.who, line.what, before=line.before, after=line.after
                    )
                    make()
                    undo.callback(take_back)
                undo.pop_all()  # both are there

        await self.work(change)

    async def stream(self, make: Callable[[Engine], Iterator[bytes]]) -> AsyncIterator[bytes]:
        """Returns what `make` yields; it is asked in a thread, for the first piece before this returns.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        await self.check()
        pieces = make(self._engine)
        first = await self.work(lambda: next(pieces, b""))

        async def rest() -> AsyncIterator[bytes]:
            yield first
            while (piece := await self.work(lambda: next(pieces, None))) is not None:
                yield piece

        return rest()

    async def picture(self, row: Row) -> bytes:
        """Returns the photograph of an inspection, as it was sent.

        Raises:
            RequestError: 404 if it was deleted, or is lost; 503.
        """
        await self.check()
        assert self._pictures is not None
        sha256, state = bytes(row["picture"]), row["picture_state"]
        ended = state in ("expiring", "expired")
        found = None if ended else await self.work(partial(self._pictures.get, sha256))
        if found is not None:
            return found
        if state == "kept":
            state = "lost"
            await self.work(partial(self._say_lost, sha256))
        raise RequestError(404, f"picture_{state}", f"The picture of record {row['id']} {ENDS[state]}.")

    def _say_lost(self, sha256: bytes) -> None:
        assert self._pictures is not None
        if self._pictures.read_id() is None:
            raise FileNotFoundError(f"the pictures are gone from {self._pictures.place}")
        with writing(self._engine) as connection:
            # It may have been deleted and have come again since it was not found.
            if not queries.picture_is_kept(connection, sha256) or self._pictures.contains(sha256):
                return
            queries.subtract_stored_bytes(connection, [sha256])
            queries.change_picture_states(connection, [sha256], "kept", "lost")
            dequeue_pictures(connection, [sha256])
            queries.add_audit_entry(connection, "service", "lose a picture", after={"sha256": sha256.hex()})
        self.metrics.count_lost()

    async def delete_picture(self, row: Row, who: str) -> None:
        """Deletes the photograph of an inspection, and of all others that show the same, now.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        await self.check()
        assert self._retention is not None
        await self.work(partial(self._retention.delete_picture, bytes(row["picture"]), row["id"], who))

    async def work(self, function: Callable[[], T]) -> T:
        """Does what is slow in one of the record's own threads.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, function)
        except (SQLAlchemyError, OSError) as error:
            raise self._unavailable(describe(error)) from error

    def close(self) -> None:
        """Stores what waits and ends."""
        if self._retention is not None:
            self._retention.close()
        if self._writer is not None:
            self._writer.close()
        self.misses.close()
        self._readers.shutdown(wait=False)
        self._engine.dispose()

    def _note(self, error: Exception | None) -> None:
        if error is None:
            if self._failed_at is not None:
                logger.warning("Inspections are recorded again")
            self._failed_at = None
            return
        if self._failed_at is None:
            logger.error("Inspections cannot be recorded: %s", error)
        self._failed_at = time.monotonic()
        if self._retention is not None and is_full(error):
            self._retention.run_now()

    def _unavailable(self, why: str) -> RequestError:
        detail = f"The record cannot be used now: {why}. Nothing was answered unrecorded; send it again."
        return service_unavailable("record_unavailable", detail, self._retry_after_s)
