"""Stores inspections: queued ones share a transaction, and each is reported as soon as it is durable."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from api.database.database import write_transaction
from api.record import queries
from api.record.failures import describe, is_disconnect, is_outage
from api.record.filters import start_of_hour
from api.record.inspection import NewInspection, Row, StoredInspection
from api.record.outbox import Outbox
from api.record.record_metrics import RecordMetrics
from api.record.repeats import has_same_outcome, later_request_key, request_differences
from api.record.review_queue import PRIORITY_BY_REASON, Priority, enqueue
from api.record.sampling_counts import add_sampling_counts
from api.record.storage.pictures import PictureStore
from api.record.tagging import add_tags
from segdec.runtime.identifiers import NOT_INSPECTED

MAX_BATCH = 64
"""Inspections per transaction."""
PICTURE_THREADS = 4
"""Pictures written in parallel."""
logger = logging.getLogger(__name__)


class RecordUnavailableError(Exception):
    """The record cannot be written now."""


QueuedInspection = tuple[NewInspection, "Future[StoredInspection]"]


class RecordWriter:
    """A thread that repeatedly stores all queued inspections in one transaction.

    It calls `on_attempt` after each attempt, with its error or None.
    """

    def __init__(
        self,
        engine: Engine,
        pictures: PictureStore,
        metrics: RecordMetrics,
        outbox: Outbox,
        on_attempt: Callable[[Exception | None], None],
    ) -> None:
        self._engine, self._pictures, self._metrics, self._outbox = engine, pictures, metrics, outbox
        self._on_attempt = on_attempt
        self._orphans: set[bytes] = set()
        """Stored pictures that have no row, as far as is known."""
        self._queue: queue.SimpleQueue[QueuedInspection | None] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(PICTURE_THREADS, thread_name_prefix="picture")
        self._thread = threading.Thread(target=self._run, name="record", daemon=True)
        self._thread.start()

    def store(self, inspection: NewInspection) -> "Future[StoredInspection]":
        """Queues an inspection; cancel the future to withdraw it before its turn.

        The future raises RecordUnavailableError if the inspection cannot be stored.
        """
        future: Future[StoredInspection] = Future()
        self._queue.put((inspection, future))
        return future

    def close(self) -> None:
        """Stores what is queued and ends."""
        self._queue.put(None)
        self._thread.join()
        self._threads.shutdown()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._next_batch()
            batch = [(item, future) for item, future in batch if future.set_running_or_notify_cancel()]
            if batch:
                self._store_batch(batch)

    def _next_batch(self) -> tuple[list[QueuedInspection], bool]:
        """Waits for an inspection and takes all queued ones; also returns whether the queue was closed."""
        batch: list[QueuedInspection] = []
        while len(batch) < MAX_BATCH:
            try:
                queued = self._queue.get(block=not batch)
            except queue.Empty:
                break
            if queued is None:
                return batch, True
            batch.append(queued)
        return batch, False

    def _store_batch(self, batch: Sequence[QueuedInspection]) -> None:
        """Stores a batch; if that fails, stores each alone, because one of them may be the cause."""
        begun = time.perf_counter()
        try:
            stored = self._attempt([item for item, _ in batch])
        except Exception as error:  # a failure must not end the thread
            if not isinstance(error, (SQLAlchemyError, OSError)):
                logger.exception("Storing inspections failed")
            if len(batch) > 1 and not is_outage(error):
                for queued in batch:
                    self._store_batch([queued])
                return
            self._metrics.count_failed(len(batch))
            self._on_attempt(error)
            for _, future in batch:
                future.set_exception(RecordUnavailableError(describe(error)))
            return
        repeated = sum(one.original is not None for one in stored)
        took_ms = 1000 * (time.perf_counter() - begun)
        self._metrics.count_stored(len(stored) - repeated, repeated, took_ms)
        self._on_attempt(None)
        for (_, future), one in zip(batch, stored, strict=True):
            future.set_result(one)

    def _attempt(self, items: Sequence[NewInspection]) -> list[StoredInspection]:
        try:
            return self._put_and_commit(items)
        except SQLAlchemyError as error:
            if not is_disconnect(error):
                raise
        # The commit may have succeeded: then the second attempt finds the rows by their tokens.
        return self._put_and_commit(items)

    def _put_and_commit(self, items: Sequence[NewInspection]) -> list[StoredInspection]:
        self._remove_orphans()
        pictures = {item.sha256: item for item in items}
        self._orphans.update(pictures)
        list(self._threads.map(self._put, pictures.values()))
        stored = self._commit(items, pictures)
        self._orphans.clear()
        self._clear_marks(pictures)
        return stored

    def _remove_orphans(self) -> None:
        """Removes the pictures of failed attempts; while that fails, no more pictures are stored."""
        if not self._orphans:
            return
        self._pictures.read_id()  # fails early, before the transaction blocks other services
        with write_transaction(self._engine) as connection:
            remove_orphans(connection, self._pictures, self._orphans)
        self._orphans.clear()

    def _clear_marks(self, pictures: Iterable[bytes]) -> None:
        try:
            self._pictures.clear_marks(*pictures)
        except OSError as error:  # the next start removes the mark
            logger.warning("The mark of a picture was not removed: %s", error)

    def _put(self, item: NewInspection) -> None:
        self._pictures.put(item.sha256, item.picture)

    def _commit(
        self, items: Sequence[NewInspection], pictures: Mapping[bytes, NewInspection]
    ) -> list[StoredInspection]:
        with write_transaction(self._engine) as connection:
            queries.upsert_pictures(connection, [item.picture_row for item in pictures.values()])
            exist = zip(pictures.values(), self._threads.map(self._pictures.contains, pictures), strict=True)
            deleted = [item for item, exists in exist if not exists]  # since they were stored
            list(self._threads.map(self._put, deleted))
            stored = add_rows(connection, [item.row for item in items], self._outbox)
            queries.expire_unreferenced(connection, list(rejected_hashes(items, stored)))
            return stored


def add_rows(connection: Connection, rows: Sequence[Row], outbox: Outbox) -> list[StoredInspection]:
    """Inserts rows with their counts, review tasks and events; returns for each its id or its original.

    Photographs without a verdict are queued for review only.
    """
    added = queries.add_inspections(connection, rows)
    stored = [_find_or_add(connection, row, added) for row in rows]
    new = [{**row, "id": added[row["token"]]} for row in rows if row["token"] in added]
    new.sort(key=lambda row: row["id"])
    if new:
        queries.add_hour_counts(connection, list(_sum_hours(new)))
        add_tags(connection, new)
        inspected = [row for row in new if row["label"] != NOT_INSPECTED]
        if inspected:
            add_sampling_counts(connection, inspected)
            outbox.enqueue_inspected(connection, inspected)
        drawn = [row for row in inspected if row["draw"] < row["draw_probability"]]
        queued = [(row["id"], PRIORITY_BY_REASON[row["draw_reason"]]) for row in drawn]
        refused = [(row["id"], Priority.DOUBTFUL) for row in new if row["label"] == NOT_INSPECTED]
        enqueue(connection, [*queued, *refused])
    return stored


def _find_or_add(connection: Connection, row: Row, added: dict[bytes, int]) -> StoredInspection:
    """Returns the result of a row that was added, or that has the key of another one.

    Adds it to the table and to `added` if it repeats a request, but has another model or verdict.
    """
    if row["token"] in added:
        return StoredInspection(added[row["token"]])
    original = queries.find_original(connection, row)
    if original["token"] == row["token"]:
        return StoredInspection(original["id"])
    differences = request_differences(row, original)
    if differences or has_same_outcome(row, original):
        return StoredInspection(original["id"], original, differences)
    again = {**row, "request_key": later_request_key(row)}
    added |= queries.add_inspections(connection, [again])
    return _find_or_add(connection, again, added)


def rejected_hashes(items: Iterable[NewInspection], stored: Iterable[StoredInspection]) -> Iterator[bytes]:
    """Yields the hashes of pictures whose Idempotency-Key belongs to an inspection of a different picture."""
    for item, one in zip(items, stored, strict=True):
        if "picture" in one.differences:
            yield item.sha256


def _sum_hours(rows: Iterable[Row]) -> Iterable[Row]:
    """Sums the values of the table `hours`; photographs without a verdict only extend the range of ids."""
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = {name: row[name] for name in ("station", "model", "version", "label")}
        key["hour"] = start_of_hour(row["inspected_at"])
        none = {"count": 0, "log_odds_sum": 0.0, "log_odds_squares": 0.0, "first_id": row["id"]}
        total = sums.setdefault(tuple(key.values()), {**key, **none})
        total["count"] += row["label"] != NOT_INSPECTED
        total["log_odds_sum"] += row["log_odds"]
        total["log_odds_squares"] += row["log_odds"] ** 2
        total["last_id"] = row["id"]
    return sums.values()


def remove_orphans(connection: Connection, pictures: PictureStore, marked: Set[bytes]) -> None:
    """Deletes those marked pictures that have no row, and clears the marks of the others."""
    kept = {sha256 for sha256 in marked if queries.picture_state(connection, sha256) == "kept"}
    pictures.clear_marks(*kept)
    pictures.delete(*marked - kept)
