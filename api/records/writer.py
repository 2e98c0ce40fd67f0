"""Keeps inspections: what waits is stored together, and each is told once it is durable."""

import errno
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from api.records import queries
from api.records.database import writing
from api.records.inspection import Inspection, Row, StoredInspection
from api.records.outbox import Outbox
from api.records.record_metrics import RecordMetrics
from api.records.review.review_queue import PRIORITIES, enqueue
from api.records.review.sampling_counts import add_sampling_counts
from api.records.storage.pictures import PictureStore

MAX_BATCH = 64
"""Inspections of one transaction."""
PICTURE_THREADS = 4
"""Pictures that are written at the same time."""
logger = logging.getLogger(__name__)


class RecordUnavailableError(Exception):
    """The record cannot be written now."""


Waiting = tuple[Inspection, "Future[StoredInspection]"]


class RecordWriter:
    """A thread that stores what has come since it last looked, in one transaction.

    Args:
        engine: Of the database, whose tables are today's.
        pictures: Where the pictures go.
        metrics: Told what is kept.
        outbox: Takes what is to be told to others.
        tell: Told the error of each attempt; None of one that went well.
    """

    def __init__(
        self,
        engine: Engine,
        pictures: PictureStore,
        metrics: RecordMetrics,
        outbox: Outbox,
        tell: Callable[[Exception | None], None],
    ) -> None:
        self._engine, self._pictures, self._metrics, self._tell = engine, pictures, metrics, tell
        self._outbox = outbox
        self._left: set[bytes] = set()
        """Pictures that were put and have no row, as far as is known."""
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(PICTURE_THREADS, thread_name_prefix="picture")
        self._thread = threading.Thread(target=self._run, name="record", daemon=True)
        self._thread.start()

    def store(self, inspection: Inspection) -> "Future[StoredInspection]":
        """Stores an inspection, unless its future is cancelled before its turn.

        The future raises RecordUnavailableError if it cannot be stored.
        """
        future: Future[StoredInspection] = Future()
        self._waiting.put((inspection, future))
        return future

    def close(self) -> None:
        """Stores what waits and ends."""
        self._waiting.put(None)
        self._thread.join()
        self._threads.shutdown()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._take()
            taken = [(item, future) for item, future in batch if future.set_running_or_notify_cancel()]
            if taken:
                self._store(taken)

    def _take(self) -> tuple[list[Waiting], bool]:
        """Waits for one and takes what else is there; also returns whether there will be no more."""
        taken: list[Waiting] = []
        while len(taken) < MAX_BATCH:
            try:
                waiting = self._waiting.get(block=not taken)
            except queue.Empty:
                break
            if waiting is None:
                return taken, True
            taken.append(waiting)
        return taken, False

    def _store(self, batch: Sequence[Waiting]) -> None:
        """Stores a batch; where that fails, each alone, since it may be the fault of one of them."""
        begun = time.perf_counter()
        try:
            kept = self._attempt([item for item, _ in batch])
        except Exception as error:  # whatever it is, the next ones are tried
            if not isinstance(error, (SQLAlchemyError, OSError)):
                logger.exception("Storing inspections failed")
            if len(batch) > 1 and not is_outage(error):
                for waiting in batch:
                    self._store([waiting])
                return
            self._metrics.count_failed(len(batch))
            self._tell(error)
            for _, future in batch:
                future.set_exception(RecordUnavailableError(describe(error)))
            return
        repeated = sum(one.original is not None for one in kept)
        took_ms = 1000 * (time.perf_counter() - begun)
        self._metrics.count_stored(len(kept) - repeated, repeated, took_ms)
        self._tell(None)
        for (_, future), one in zip(batch, kept, strict=True):
            future.set_result(one)

    def _attempt(self, items: Sequence[Inspection]) -> list[StoredInspection]:
        self._remove_left()
        pictures = {item.sha256: item for item in items}
        self._left.update(pictures)
        list(self._threads.map(self._put, pictures.values()))
        try:
            kept = self._commit(items, pictures)
        except DBAPIError as error:
            if not _is_disconnect(error):
                raise
            # All may be committed, and the word of it lost: then this finds it, by its tokens.
            kept = self._commit(items, pictures)
        self._left.clear()
        self._clear_marks(pictures)
        return kept

    def _remove_left(self) -> None:
        """Removes the pictures of attempts that failed: while that cannot be, no more of them are put."""
        if not self._left:
            return
        self._pictures.read_id()  # a store that does not answer keeps nobody waiting for the transaction
        with writing(self._engine) as connection:
            remove_orphans(connection, self._pictures, self._left)
        self._left.clear()

    def _clear_marks(self, pictures: Iterable[bytes]) -> None:
        try:
            self._pictures.clear_marks(*pictures)
        except OSError as error:  # a mark too many: the next start removes it
            logger.warning("The mark of a picture was not removed: %s", error)

    def _put(self, item: Inspection) -> None:
        self._pictures.put(item.sha256, item.picture)

    def _commit(
        self, items: Sequence[Inspection], pictures: Mapping[bytes, Inspection]
    ) -> list[StoredInspection]:
        with writing(self._engine) as connection:
            queries.upsert_pictures(connection, [item.picture_row for item in pictures.values()])
            there = zip(pictures.values(), self._threads.map(self._pictures.contains, pictures), strict=True)
            gone = [item for item, held in there if not held]  # between their coming and this transaction
            list(self._threads.map(self._put, gone))
            kept = _add(connection, [item.row for item in items], self._outbox)
            queries.expire_unreferenced(connection, list(rejected_hashes(items, kept)))
            return kept


def _add(connection: Connection, rows: Sequence[Row], outbox: Outbox) -> list[StoredInspection]:
    """Adds rows; returns for each its id, or the earlier row that stands for it."""
    added = queries.add_inspections(connection, rows)
    new = [{**row, "id": added[row["token"]]} for row in rows if row["token"] in added]
    if new:
        queries.add_hour_counts(connection, list(_hours(new)))
        add_sampling_counts(connection, new)
        drawn = [row for row in new if row["draw"] < row["draw_probability"]]
        enqueue(connection, [(row["id"], PRIORITIES[row["draw_reason"]]) for row in drawn])
        outbox.enqueue_inspected(connection, new)
    kept = []
    for row in rows:
        if row["token"] in added:
            kept.append(StoredInspection(added[row["token"]]))
        else:
            original = queries.find_original(connection, row)
            kept.append(
                StoredInspection(original["id"], None if original["token"] == row["token"] else original)
            )
    return kept


def rejected_hashes(items: Iterable[Inspection], kept: Iterable[StoredInspection]) -> Iterator[bytes]:
    """Yields the pictures that came with the key of another one, and are refused."""
    for item, one in zip(items, kept, strict=True):
        if one.original is not None and bytes(one.original["picture"]) != item.sha256:
            yield item.sha256


def _hours(rows: Iterable[Row]) -> Iterable[Row]:
    """Sums what the table `hours` has of these rows."""
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = {name: row[name] for name in ("station", "model", "version", "label")}
        key["hour"] = queries.start_of_hour(row["inspected_at"])
        none = {"count": 0, "log_odds_sum": 0.0, "log_odds_squares": 0.0, "first_id": row["id"]}
        total = sums.setdefault(tuple(key.values()), {**key, **none})
        total["count"] += 1
        total["log_odds_sum"] += row["log_odds"]
        total["log_odds_squares"] += row["log_odds"] ** 2
        total["last_id"] = row["id"]
    return sums.values()


def remove_orphans(connection: Connection, pictures: PictureStore, marked: Set[bytes]) -> None:
    """Removes those of the pictures that have no row, and the marks of the others."""
    kept = {sha256 for sha256 in marked if queries.picture_is_kept(connection, sha256)}
    pictures.clear_marks(*kept)
    pictures.delete(*marked - kept)


def is_full(error: Exception) -> bool:
    """Returns whether an error comes from a disk that has no space left."""
    text = str(getattr(error, "orig", error))
    return "full" in text or "space left" in text or getattr(error, "errno", None) == errno.EDQUOT


def describe(error: Exception) -> str:
    """Says in a few words what a client may know of an error; the log knows the rest."""
    if is_full(error):
        return "its disk is full"
    if isinstance(error, OSError):
        return "its pictures cannot be written"
    return "its database does not answer" if isinstance(error, SQLAlchemyError) else "the service has a fault"


def is_outage(error: Exception) -> bool:
    """Returns whether nothing can be stored: then none is tried alone, which could take as long for each."""
    if isinstance(error, OperationalError):  # a lock that is not given, a server that is not there
        return not is_full(error)
    return isinstance(error, (ConnectionError, PoolTimeoutError)) or _is_disconnect(error)


def _is_disconnect(error: Exception) -> bool:
    return isinstance(error, DBAPIError) and error.connection_invalidated
