"""Sends the messages of one sink at least once, in order for each station; stations do not block each other.

A station's messages are read from the oldest on, delivered one after the other, and deleted. After a failure
the station backs off and starts again with the same message: the outbox has all the state.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from api.delivery.backoff import Backoff
from api.delivery.outbox_metrics import OutboxMetrics
from api.delivery.outbox_store import OutboxStore
from api.delivery.sink import DeliveryError, OutboxMessage, Sink
from api.delivery.sink_lock import SinkLock
from api.record import outbox_queries as queries
from api.record.inspection import Row
from api.record.queries import add_audit_entry

POLL_S = 0.25
"""Seconds between two polls."""
SIZE_CHECK_S = 15.0
STATIONS_PER_POLL = 1000
"""Stations per poll; the next poll continues after them."""
PARALLEL_STATIONS = 32
MESSAGES_PER_QUERY = 50
"""Messages of a station per query."""
TIMEOUT_S = 30.0
"""Seconds that one delivery may take."""
MAX_FAILURES = 20
"""Failures that may be the message's fault, before it is given up."""
DELETE_BATCH = 1000
"""Messages that are given up or dropped in one transaction."""
MAX_ERROR_CHARACTERS = 300
"""Length of a stored error."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeliveryRules:
    """When messages are given up or dropped.

    A failing message is given up when it is older than `max_age`. Of more than `max_messages` of one sink the
    oldest are dropped, dead ones first.
    """

    max_age: timedelta
    max_messages: int


class Sender:
    """Polls the outbox and delivers while it holds the lock."""

    def __init__(
        self,
        sink: Sink,
        store: OutboxStore,
        lock: SinkLock,
        rules: DeliveryRules,
        metrics: OutboxMetrics,
        backoff: Backoff | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._sink, self._store, self._lock, self._rules = sink, store, lock, rules
        self._metrics, self._backoff, self._now = metrics, backoff or Backoff(), now
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(PARALLEL_STATIONS)
        self._after: str | None = None
        self._size_check_at = float("-inf")
        self._failed = False

    async def run(self, stopping: asyncio.Event, grace_s: float) -> None:
        """Sends until `stopping` is set, and then for up to `grace_s`."""
        try:
            while not stopping.is_set():
                await self.poll()
                await _wait(stopping, POLL_S)
            async with asyncio.timeout(grace_s):
                await self.poll()
                await self.drain()
        except TimeoutError:
            logger.warning("Some events for %s wait for the next start", self._sink.name)
        finally:
            await self.close()

    async def poll(self) -> None:
        """Starts deliveries; logs an error once, however long it lasts."""
        try:
            await self.start_deliveries()
            self._failed = False
        except Exception as error:  # the next poll tries again
            if not self._failed:
                unexpected = not isinstance(error, SQLAlchemyError)
                message = "The outbox for %s cannot be read or written: %s"
                logger.error(message, self._sink.name, error, exc_info=unexpected)
            self._failed = True

    async def start_deliveries(self) -> None:
        """Starts a task for each station with waiting messages that is not busy or backing off.

        Raises:
            SQLAlchemyError: If the database does not answer.
        """
        # First, because messages that cannot be deleted would be sent again and again.
        await self._store.delete_delivered()
        locked = await self._store.run_in_thread(self._lock.acquire)
        if time.monotonic() >= self._size_check_at:
            self._size_check_at = time.monotonic() + SIZE_CHECK_S
            await self._check_size(may_drop=locked)
        if not locked:
            for task in self._tasks.values():  # the lock was lost
                task.cancel()
            return
        stations = await self._store.read(
            queries.waiting_stations, self._sink.name, self._after, STATIONS_PER_POLL
        )
        self._after = stations[-1][0] if len(stations) == STATIONS_PER_POLL else None
        for station, retry_at in stations:
            if station not in self._tasks and self._is_due(station, retry_at):
                self._tasks[station] = asyncio.create_task(self._send(station))

    def _is_due(self, station: str, retry_at: datetime | None) -> bool:
        """Returns whether a message may be sent: by the delay of its station, which does not depend on the
        clock, or else, as after a restart, by the time that is stored with the message. A time beyond the
        maximum age is of a clock that was wrong.
        """
        if self._backoff.is_failing(station):
            return self._backoff.is_over(station)
        now = self._now()
        return retry_at is None or not now < retry_at <= now + self._rules.max_age

    async def drain(self) -> None:
        """Returns when no station is busy."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def close(self) -> None:
        """Cancels deliveries and releases sink and lock."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self._store.delete_delivered()
        except SQLAlchemyError as error:
            logger.warning("The last events for %s may be sent again: %s", self._sink.name, error)
        await self._sink.close()
        await self._store.run_in_thread(self._lock.release)

    # === One station ===

    async def _send(self, station: str) -> None:
        try:
            while await self._send_batch(station):
                pass
        except Exception as error:  # mostly the database's; back off instead of failing at each poll
            self._backoff.start(station)
            logger.warning("Sending to %s is interrupted: %s", self._sink.name, error)
        finally:
            del self._tasks[station]

    async def _send_batch(self, station: str) -> bool:
        """Delivers a batch; returns whether to continue."""
        async with self._slots:
            rows = await self._store.read(
                queries.waiting_messages, self._sink.name, station, MESSAGES_PER_QUERY
            )
            for row in rows:
                if not self._is_due(station, row["retry_at"]) or not await self._deliver(row):
                    return False
            await self._store.delete_delivered()  # before the next query, which would return them again
            return bool(rows)

    async def _deliver(self, row: Row) -> bool:
        """Delivers a message; returns whether the next one may follow: it was delivered or given up."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._sink.deliver(OutboxMessage.from_row(row))
        except TimeoutError:
            error = DeliveryError(f"no answer in {TIMEOUT_S:g} s", "unreachable")
        except DeliveryError as failure:
            error = failure
        except Exception as failure:  # a bug that may concern this message only
            logger.exception("Sending to %s failed", self._sink.name)
            error = DeliveryError(f"{type(failure).__name__}: {failure}", "failed")
        else:
            self._store.mark_delivered(row["id"])
            self._backoff.reset(row["station"])
            self._metrics.attempts.labels(self._sink.name, "delivered").inc()
            return True
        return await self._handle_failure(row, error)

    async def _handle_failure(self, row: Row, error: DeliveryError) -> bool:
        """Stores a failure; returns whether the message is given up."""
        now, why = self._now(), str(error)[:MAX_ERROR_CHARACTERS]
        station, attempts = row["station"], row["attempts"] + (error.cause == "failed")
        self._metrics.attempts.labels(self._sink.name, error.cause).inc()
        if error.cause == "refused" or attempts >= MAX_FAILURES:
            logger.error("An event for %s is given up: %s", self._sink.name, why)
            await self._store.write(queries.mark_dead, row["id"], attempts, why)
            return True
        if not self._backoff.is_failing(station):
            logger.warning("Sending events of station '%s' to %s fails: %s", station, self._sink.name, why)
        seconds = self._backoff.start(station, error.retry_after_s)
        if row["created_at"] < (old := now - self._rules.max_age):
            why = f"not delivered within {self._rules.max_age}: {why}"
            logger.error("Events for %s are given up: %s", self._sink.name, why)
            await self._store.write(queries.mark_old_dead, self._sink.name, station, old, why, DELETE_BATCH)
        else:
            next_at = now + timedelta(seconds=seconds)
            await self._store.write(queries.save_failure, row["id"], attempts, next_at, why)
        return False

    # === Size ===

    async def _check_size(self, *, may_drop: bool) -> None:
        """Measures the backlog, and drops messages beyond the limit."""
        backlogs = await self._store.read(queries.count_backlogs)
        waiting, dead = (backlogs[self._sink.name, state] for state in (queries.WAITING, queries.DEAD))
        self._metrics.set_backlogs(self._sink.name, waiting, dead, self._now())
        excess = waiting.count + dead.count - self._rules.max_messages
        for state in (queries.DEAD, queries.WAITING):
            while may_drop and excess > 0 and (dropped := await self._drop(state, min(excess, DELETE_BATCH))):
                excess -= dropped

    async def _drop(self, state: str, count: int) -> int:
        def drop(connection: Connection) -> int:
            dropped = queries.drop_oldest(connection, self._sink.name, state, count)
            if dropped:
                facts = {"sink": self._sink.name, "state": state, "count": dropped}
                add_audit_entry(connection, "outbox", "drop events", after=facts)
            return dropped

        dropped = await self._store.write(drop)
        self._metrics.dropped.labels(self._sink.name).inc(dropped)
        logger.error("The outbox for %s is full: %d %s events are dropped", self._sink.name, dropped, state)
        return dropped


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
