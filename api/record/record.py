"""The record as the routes use it: opening, writing, reading."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from api.database.database import open_database, write_transaction
from api.database.database_files import files_of
from api.errors import RequestError, service_unavailable
from api.http.deadlines import deadline_error
from api.record import queries
from api.record.audit import AuditEntry
from api.record.failures import DESCRIPTIONS, code_of, describe, explain, is_full, is_outage
from api.record.initialization import (
    check_writable,
    database_url,
    initialize_record,
    remove_orphaned_pictures,
)
from api.record.inspection import NewInspection, Row, StoredInspection
from api.record.outbox import Outbox
from api.record.record_metrics import RecordMetrics
from api.record.review_queue import dequeue_pictures
from api.record.storage.pictures import STORE_ID, PictureStore
from api.record.storage.reserved_space import ReservedSpace
from api.record.storage.retention import ClockMonitor, Retention, RetentionRules
from api.record.uninspected_log import UninspectedLog
from api.record.writer import RecordUnavailableError, RecordWriter
from segdec.errors import ConfigError

Args = TypeVarTuple("Args")
T = TypeVar("T")

RESERVED_SPACE_FILE = "ballast"
READERS = 4
"""Threads that read, so that requests do not wait for each other and leave CPU for inference."""
WRITERS = 4
"""Threads that change the record: a locked database makes them wait, but not those that read."""
REOPEN_S = 1.0
"""Seconds to wait after a failure before the next attempt."""
logger = logging.getLogger(__name__)


class Record:
    """Stored inspections with their pictures.

    Every coroutine raises RequestError 503 `record_unavailable` if the record cannot be used now. What is
    recorded can be read although nothing can be written, for example while the disk is full.

    Attributes:
        problem: Why the record cannot be used, as far as is known: a key of `DESCRIPTIONS`.
        changes: Number of changes that were made here; not those of other replicas.

    Args:
        url: URL of the database; None = a file in `folder`.
        folder: Folder for the database and pictures, unless `url` and `pictures` give another location.
        rules: How long pictures are kept.
        retry_after_s: `Retry-After` of answers while the record cannot be used.
        metrics: Metrics of the record.
        outbox: Queues events.
        pictures: The picture store; None = in `folder`.

    Raises:
        ConfigError: If `url` cannot be used.
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
        self.uninspected = UninspectedLog(self._engine, outbox=outbox)
        self._folder, self._rules, self._retry_after_s = folder, rules, retry_after_s
        self.metrics, self._given_pictures = metrics, pictures
        self._failed_at: float | None = None
        self._read_failed_at: float | None = None
        self.problem: str | None = None
        self.changes = 0
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="record-reader")
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="record-writer")
        self._opening = asyncio.Lock()
        self._writer: RecordWriter | None = None
        self._pictures: PictureStore | None = None
        self._retention: Retention | None = None
        self._may_have_orphans = True

    async def open(self) -> None:
        """Migrates the database, removes orphaned pictures, and starts the threads.

        If nothing can be written, but also need not be, what is recorded can be read.

        Raises:
            ConfigError: If database and pictures do not belong together, a newer version wrote them, or
                another service uses them.
        """
        async with self._opening:
            if self._writer is not None:
                return
            # Another request may have failed while this one waited.
            self._raise_if_backing_off(self._failed_at)
            try:
                pictures, retention, failure = await asyncio.to_thread(self._initialize)
            except (SQLAlchemyError, OSError) as error:
                self._note_closed(error)
                raise self._unavailable(describe(error)) from error
            self._pictures, self._retention = pictures, retention
            self._writer = RecordWriter(self._engine, pictures, self.metrics, self.outbox, self._on_attempt)
            self._on_attempt(failure)
            retention.start()
            self.uninspected.start()
            self.metrics.usable.set(True)

    def _note_closed(self, error: Exception) -> None:
        self._failed_at = time.monotonic()
        self.metrics.usable.set(False)
        self._report("The record cannot be opened: %s", error)
        if is_full(error):
            self._reserved_space.release()  # opening needs some space, too

    def _report(self, message: str, error: Exception) -> None:
        """Logs an error, once until the record can be used again or fails for another reason."""
        problem = code_of(error)
        if problem != self.problem:
            logger.error(message, explain(error))
        self.problem = problem

    def _initialize(self) -> tuple[PictureStore, Retention, Exception | None]:
        """Returns the pictures, what deletes them, and why the record cannot be written."""
        if (files := files_of(self._engine)) is not None:
            files.lock()
        pictures = initialize_record(self._engine, self._folder, self._given_pictures)
        with self._engine.connect() as connection:
            newest = queries.newest_hour(connection)
        clock = ClockMonitor(None if newest is None else newest.timestamp())
        rules, space = self._rules, self._reserved_space
        retention = Retention(self._engine, pictures, rules, clock, space, self.metrics, self._check_failure)
        try:
            self._remove_orphans(pictures)
            check_writable(self._engine, pictures)
        except (SQLAlchemyError, OSError) as error:
            return pictures, retention, error
        return pictures, retention, None

    def _remove_orphans(self, pictures: PictureStore) -> None:
        """Removes orphaned pictures, once."""
        if self._may_have_orphans:
            remove_orphaned_pictures(self._engine, pictures)
            self._may_have_orphans = False

    @property
    def _reserved_space(self) -> ReservedSpace:
        return ReservedSpace(self._folder / RESERVED_SPACE_FILE, self._rules.reserved_bytes)

    def _check_failure(self) -> None:
        """After a failure, finds out whether the record can be written again; raises as `write`."""
        self._remove_orphans(self.pictures)
        if self.problem is not None:
            check_writable(self._engine, self.pictures)
            self._on_attempt(None)

    def set_rules(self, rules: RetentionRules) -> None:
        """Keeps pictures by new rules from now on."""
        self._rules = rules
        if self._retention is not None:
            self._retention.rules = rules

    def problems(self) -> dict[str, str]:
        """Returns why the record cannot be used, as far as is known, and what space is short of, by codes."""
        problems = {}
        if self.problem is not None:
            problems[self.problem] = f"The record cannot be used: {DESCRIPTIONS[self.problem]}."
        if self._retention is not None and self._retention.problem is not None:
            problems["space_short"] = f"{self._retention.problem}."
        return problems

    @property
    def is_usable(self) -> bool:
        """Whether inspections can be stored, as far as is known."""
        return self._writer is not None and self._failed_at is None

    async def check(self) -> None:
        """Rejects requests for a second after a failure; opens the record if necessary."""
        self._raise_if_backing_off(self._failed_at)
        await self._open_if_closed()

    async def _open_if_closed(self) -> None:
        if self._writer is None:
            try:
                await self.open()
            except ConfigError as error:  # detected too late to stop the start
                self._note_closed(error)
                raise self._unavailable("it cannot be opened, see the log") from error

    async def _check_readable(self) -> None:
        """Like `check`, but a failed write does not prevent reading."""
        self._raise_if_backing_off(self._read_failed_at)
        await self._open_if_closed()

    def _raise_if_backing_off(self, failed_at: float | None) -> None:
        if failed_at is not None and time.monotonic() - failed_at < REOPEN_S:
            why = "it failed a moment ago" if self.problem is None else DESCRIPTIONS[self.problem]
            raise self._unavailable(why)

    async def store(self, inspection: NewInspection, deadline: float) -> StoredInspection:
        """Stores an inspection durably: row and picture survive a power loss.

        Raises:
            RequestError: 504 at the deadline (`time.perf_counter`); it may nevertheless be stored later.
        """
        await self.check()
        assert self._writer is not None
        future = asyncio.wrap_future(self._writer.store(inspection))
        try:
            async with asyncio.timeout(deadline - time.perf_counter()):
                stored = await future
        except TimeoutError:
            raise deadline_error() from None
        except RecordUnavailableError as error:
            raise self._unavailable(str(error)) from error
        self.changes += 1
        return stored

    async def read(self, query: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """Runs a query in a thread and returns its result."""

        def run(engine: Engine) -> T:
            with engine.connect() as connection:
                return query(connection, *args)

        return await self.read_all(run)

    async def read_all(self, make: Callable[[Engine], T]) -> T:
        """Runs a function that reads in several transactions in a thread and returns its result."""
        await self._check_readable()
        return await self.run_in_thread(partial(make, self._engine))

    async def write_all(self, make: Callable[[Engine], T]) -> T:
        """Runs a function that makes changes in transactions of its own, in a thread; returns its result."""
        await self.check()
        try:
            return await self._run(self._writers, partial(make, self._engine))
        finally:
            self.changes += 1

    async def write(self, change: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """Runs a change in a thread, in one transaction, and returns its result."""

        def run(engine: Engine) -> T:
            with write_transaction(engine) as connection:
                return change(connection, *args)

        return await self.write_all(run)

    async def change_with_audit(
        self, entry: AuditEntry, make: Callable[[], None], revert: Callable[[], None]
    ) -> None:
        """Makes a change outside of the record together with its audit entry, both or neither; see
        `Recording.change`.
        """
        await self.check()

        def change() -> None:
            with ExitStack() as undo:
                with write_transaction(self._engine) as connection:
                    queries.add_audit_entry(
                        connection, entry.who, entry.what, before=entry.before, after=entry.after
                    )
                    make()
                    undo.callback(revert)
                undo.pop_all()  # committed

        await self._run(self._writers, change)

    async def stream(self, make: Callable[[Engine], Iterator[bytes]]) -> AsyncIterator[bytes]:
        """Returns the chunks that `make` yields, read in threads; it returns when the first one is read."""
        await self._check_readable()
        chunks = make(self._engine)
        first = await self.run_in_thread(lambda: next(chunks, b""))

        async def rest() -> AsyncIterator[bytes]:
            yield first
            while (chunk := await self.run_in_thread(lambda: next(chunks, None))) is not None:
                yield chunk

        return rest()

    @property
    def pictures(self) -> PictureStore:
        """The picture store; only of an open record."""
        assert self._pictures is not None
        return self._pictures

    async def read_picture(self, row: Row) -> bytes:
        """Returns the photograph of an inspection as it was sent.

        Raises:
            RequestError: 404 if it was deleted or is lost.
        """
        await self._check_readable()
        assert self._pictures is not None
        sha256, state = bytes(row["picture"]), row["picture_state"]
        deleted = state in ("expiring", "expired")
        picture = None if deleted else await self.run_in_thread(partial(self._pictures.get, sha256))
        if picture is not None:
            return picture
        if state == "kept":
            state = "lost"
            await self._run(self._writers, partial(self._mark_lost, sha256))
        reason = _describe_deletion(row) if deleted else "is lost: its file is not in the store"
        raise RequestError(404, f"picture_{state}", f"The picture of record {row['id']} {reason}.")

    def _mark_lost(self, sha256: bytes) -> None:
        assert self._pictures is not None
        if self._pictures.read_id() is None:
            raise FileNotFoundError(f"{self._pictures.location} has no {STORE_ID} any more")
        with write_transaction(self._engine) as connection:
            # Meanwhile it may have been deleted and have arrived again.
            state = queries.picture_state(connection, sha256)
            if state != "kept" or self._pictures.contains(sha256):
                return
            queries.subtract_stored_bytes(connection, [sha256])
            queries.change_picture_states(connection, [sha256], "kept", "lost")
            dequeue_pictures(connection, [sha256])
            queries.add_audit_entry(connection, "service", "lose a picture", after={"sha256": sha256.hex()})
        self.metrics.lost.inc()

    async def delete_picture(self, row: Row, who: str) -> None:
        """Deletes the photograph of an inspection immediately, also for all others that share it."""
        await self.check()
        assert self._retention is not None
        delete = partial(self._retention.delete_picture, bytes(row["picture"]), row["id"], who)
        await self._run(self._writers, delete)

    async def run_in_thread(self, function: Callable[[], T]) -> T:
        """Runs a slow function that reads in one of the record's threads."""
        return await self._run(self._readers, function)

    async def _run(self, threads: ThreadPoolExecutor, function: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, function)
        except (SQLAlchemyError, OSError) as error:
            if threads is self._readers and is_outage(error):
                self._read_failed_at = time.monotonic()
            self._report("The record cannot be read or changed: %s", error)
            raise self._unavailable(describe(error)) from error

    def close(self) -> None:
        """Stores queued inspections and ends."""
        if self._retention is not None:
            self._retention.close()
        if self._writer is not None:
            self._writer.close()
        self.uninspected.close()
        self._readers.shutdown(wait=False)
        self._writers.shutdown(wait=False)
        self._engine.dispose()
        if (files := files_of(self._engine)) is not None:
            files.unlock()

    def _on_attempt(self, error: Exception | None) -> None:
        if error is None:
            if self._failed_at is not None:
                logger.warning("Inspections are recorded again")
            self._failed_at = self.problem = None
            return
        self._report("Inspections cannot be recorded: %s", error)
        self._failed_at = time.monotonic()
        if self._retention is not None and is_full(error):
            self._retention.run_now()

    def _unavailable(self, why: str) -> RequestError:
        detail = f"The record cannot be used now: {why}. Nothing was recorded or answered; send it again."
        return service_unavailable("record_unavailable", detail, self._retry_after_s)


def _describe_deletion(row: Row) -> str:
    """Says who deleted the picture of a row of `queries.with_pictures`, and when, if that is known."""
    if row["picture_deleted_at"] is None:
        return "was deleted by the retention rules or by a person"
    who = row["picture_deleted_by"] or "the retention rules"
    return f"was deleted by {who} at {row['picture_deleted_at']:%Y-%m-%d %H:%M} UTC"
