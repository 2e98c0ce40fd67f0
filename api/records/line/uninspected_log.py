"""Keeps what was not inspected: at once in this process's memory, soon in the database.

No answer waits for it. Whatever comes, rows are written at a bounded pace: beyond it, misses alike share one
row, which counts them.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace

from sqlalchemy import Connection, Engine, delete, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from api.inspection.uninspected import UninspectedPhotograph
from api.records.database import writing
from api.records.tables import misses

BURST = 500
"""Rows that may be written at once."""
ROW_S = 5.0
"""Seconds after which one more may."""
MAX_WAITING = 1000
"""Kinds of misses that wait for a row, beside those that name no station."""
MAX_ROWS = 100_000
"""Of the table; then the oldest go."""
RETRY_S = 2.0
"""Seconds after a failure in which nothing is tried again."""
PATIENCE_S = 2.0
"""Seconds that a reader waits for rows that are being written."""
logger = logging.getLogger(__name__)


class UninspectedLog:
    """What was not inspected and stands in no row yet; a thread writes it.

    Args:
        engine: Of the record's database.
        clock: Seconds that never go back.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine, self._clock = engine, clock
        self._rows, self._counted_at = float(BURST), clock()
        self._waiting: dict[Hashable, UninspectedPhotograph] = {}
        self._writing: dict[Hashable, UninspectedPhotograph] = {}
        self._lock = threading.Lock()
        self._committing = threading.Lock()
        self._due, self._ended = threading.Event(), threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="misses", daemon=True)

    def start(self) -> None:
        """Begins to write; the tables are there."""
        self._thread.start()

    def note(self, miss: UninspectedPhotograph) -> None:
        """Takes a miss; from any thread, at once."""
        with self._lock:
            key = self._key(miss)
            known = self._waiting.get(key)
            self._waiting[key] = miss if known is None else _join(known, miss)
        self._due.set()

    def _key(self, miss: UninspectedPhotograph) -> Hashable:
        """Returns what is one row with the miss: nothing else, as long as there may be a row for each."""
        self._refill()
        if len(self._waiting) < int(self._rows):
            return object()
        alike = (miss.station, miss.client, miss.status, miss.code)
        if alike in self._waiting or len(self._waiting) < MAX_WAITING:
            return alike
        return miss.status, miss.code

    def _refill(self) -> None:
        now = self._clock()
        self._rows = min(float(BURST), self._rows + (now - self._counted_at) / ROW_S)
        self._counted_at = now

    @contextmanager
    def unwritten(self) -> Iterator[list[UninspectedPhotograph]]:
        """Yields what stands in no row, the oldest first; within the block none of it is written.

        Where the database hangs while it writes, some of it may stand in a row all the same.
        """
        held = self._committing.acquire(timeout=PATIENCE_S)
        try:
            yield self.known()
        finally:
            if held:
                self._committing.release()

    def known(self) -> list[UninspectedPhotograph]:
        """Returns at once what stands in no row, or has only just come to stand in one."""
        with self._lock:
            return [*self._writing.values(), *self._waiting.values()]

    def write(self) -> None:
        """Writes what may be written now.

        Raises:
            SQLAlchemyError: If that cannot be; it waits then.
        """
        with self._committing:
            chosen = self._take()
            if not chosen:
                return
            try:
                with writing(self._engine) as connection:
                    connection.execute(insert(misses), [asdict(miss) for miss in chosen])
                    _trim(connection)
            except BaseException:
                self._take_back()
                raise
            with self._lock:
                self._writing = {}

    def _take(self) -> list[UninspectedPhotograph]:
        """Takes those for which there may be a row now; they are known as being written until they are."""
        with self._lock:
            self._refill()
            self._writing = dict(list(self._waiting.items())[: int(self._rows)])
            self._rows -= len(self._writing)
            for key in self._writing:
                del self._waiting[key]
            return list(self._writing.values())

    def _take_back(self) -> None:
        with self._lock:
            later = self._waiting
            self._rows += len(self._writing)
            self._waiting, self._writing = self._writing, {}
            for key, miss in later.items():
                known = self._waiting.get(key)
                self._waiting[key] = miss if known is None else _join(known, miss)

    def close(self) -> None:
        """Writes what waits, if it can, and ends."""
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
            if self._waiting:  # the pace, or a failure
                self._ended.wait(RETRY_S)
                self._due.set()

    def _attempt(self) -> None:
        try:
            self.write()
            self._failed = False
        except Exception as error:  # whatever it is, it is tried again
            if not self._failed:
                expected = isinstance(error, (SQLAlchemyError, OSError))
                logger.error("What was not inspected cannot be noted: %s", error, exc_info=not expected)
            self._failed = True


def _join(first: UninspectedPhotograph, later: UninspectedPhotograph) -> UninspectedPhotograph:
    """Returns the later one, which stands for both; without the station where they are of several."""
    station = later.station if first.station == later.station else ""
    return replace(later, station=station, count=first.count + later.count)


def _trim(connection: Connection) -> None:
    newest = connection.execute(select(func.max(misses.c.id))).scalar() or 0
    connection.execute(delete(misses).where(misses.c.id <= newest - MAX_ROWS))
