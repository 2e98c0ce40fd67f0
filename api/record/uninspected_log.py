"""Logs photographs that were not inspected: immediately in memory, soon in the database.

The rate of rows is limited: beyond it, similar entries share one row with a count.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace

from sqlalchemy import Connection, Engine, delete, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from api.database.database import write_transaction
from api.record.outbox import Outbox
from api.record.tables import uninspected
from api.record.uninspected_photograph import UninspectedPhotograph

BURST = 500
"""Rows that may be written at once."""
SECONDS_PER_ROW = 5.0
"""Seconds until one more row may be written."""
MAX_WAITING = 1000
"""Groups of entries in memory, besides those without a station."""
MAX_ROWS = 100_000
"""Size of the table; older rows are deleted."""
RETRY_S = 2.0
"""Seconds after a failure without another attempt."""
READER_TIMEOUT_S = 2.0
"""Seconds that a reader waits for a running transaction."""
NO_OUTBOX = Outbox()
logger = logging.getLogger(__name__)


class UninspectedLog:
    """Entries that are not yet in the database, and the thread that writes them.

    A row and its event in the `outbox` are in one transaction.
    """

    def __init__(
        self, engine: Engine, clock: Callable[[], float] = time.monotonic, outbox: Outbox = NO_OUTBOX
    ) -> None:
        self._engine, self._clock, self._outbox = engine, clock, outbox
        self._rows, self._counted_at = float(BURST), clock()
        self._waiting: dict[Hashable, UninspectedPhotograph] = {}
        self._writing: dict[Hashable, UninspectedPhotograph] = {}
        self._lock = threading.Lock()
        self._committing = threading.Lock()
        self._due, self._ended = threading.Event(), threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="uninspected", daemon=True)

    def start(self) -> None:
        """Starts the thread; the tables must exist."""
        self._thread.start()

    def add(self, photograph: UninspectedPhotograph) -> None:
        """Adds an entry without waiting; thread-safe."""
        with self._lock:
            self._merge(self._key(photograph), photograph)
        self._due.set()

    def _merge(self, key: Hashable, photograph: UninspectedPhotograph) -> None:
        known = self._waiting.get(key)
        self._waiting[key] = photograph if known is None else _join(known, photograph)

    def _key(self, photograph: UninspectedPhotograph) -> Hashable:
        """Returns the group that shares a row: a group of its own while the rate permits it."""
        self._refill()
        if len(self._waiting) < int(self._rows):
            return object()
        group = (photograph.station, photograph.client, photograph.status, photograph.code)
        if group in self._waiting or len(self._waiting) < MAX_WAITING:
            return group
        return photograph.status, photograph.code

    def _refill(self) -> None:
        now = self._clock()
        self._rows = min(float(BURST), self._rows + (now - self._counted_at) / SECONDS_PER_ROW)
        self._counted_at = now

    @contextmanager
    def unwritten(self) -> Iterator[list[UninspectedPhotograph]]:
        """Yields entries that are not in the database, the oldest first; none is written within the block.

        If a running transaction hangs, some of them may already be in the database.
        """
        locked = self._committing.acquire(timeout=READER_TIMEOUT_S)
        try:
            yield self.in_memory()
        finally:
            if locked:
                self._committing.release()

    def in_memory(self) -> list[UninspectedPhotograph]:
        """Returns entries in memory without waiting; some may just have been written."""
        with self._lock:
            return [*self._writing.values(), *self._waiting.values()]

    def write(self) -> None:
        """Writes as many rows as the rate permits.

        Raises:
            SQLAlchemyError: If that fails; the entries stay in memory.
        """
        with self._committing:
            chosen = self._take()
            if not chosen:
                return
            try:
                with write_transaction(self._engine) as connection:
                    connection.execute(insert(uninspected), [asdict(photograph) for photograph in chosen])
                    self._outbox.enqueue_not_inspected(connection, chosen)
                    _delete_oldest(connection)
            except BaseException:
                self._restore()
                raise
            with self._lock:
                self._writing = {}

    def _take(self) -> list[UninspectedPhotograph]:
        """Moves the entries that may be written now to `_writing`."""
        with self._lock:
            self._refill()
            self._writing = dict(list(self._waiting.items())[: int(self._rows)])
            self._rows -= len(self._writing)
            for key in self._writing:
                del self._waiting[key]
            return list(self._writing.values())

    def _restore(self) -> None:
        with self._lock:
            later = self._waiting
            self._rows += len(self._writing)
            self._waiting, self._writing = self._writing, {}
            for key, photograph in later.items():
                self._merge(key, photograph)

    def close(self) -> None:
        """Writes what it can and ends."""
        self._ended.set()
        self._due.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            self._attempt()
            if self._ended.is_set():
                return
            if self._waiting:  # because of the rate, or a failure
                self._ended.wait(RETRY_S)
                self._due.set()

    def _attempt(self) -> None:
        try:
            self.write()
            self._failed = False
        except Exception as error:  # the next attempt follows
            if not self._failed:
                expected = isinstance(error, (SQLAlchemyError, OSError))
                logger.error("Uninspected photographs cannot be logged: %s", error, exc_info=not expected)
            self._failed = True


def _join(first: UninspectedPhotograph, later: UninspectedPhotograph) -> UninspectedPhotograph:
    """Returns the later entry with both counts, and without a station if they differ in it."""
    station = later.station if first.station == later.station else ""
    return replace(later, station=station, count=first.count + later.count)


def _delete_oldest(connection: Connection) -> None:
    newest = connection.execute(select(func.max(uninspected.c.id))).scalar() or 0
    connection.execute(delete(uninspected).where(uninspected.c.id <= newest - MAX_ROWS))
