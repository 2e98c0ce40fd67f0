"""Sends what waits for one sink: in order for each station, at least once, and no station waits for another.

A station's letters are read from the oldest on, delivered one after the other, and removed. Where one is not
delivered the station pauses, and begins with the same one again: nothing is remembered but in the outbox.
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
from api.records import outbox_queries as queries
from api.records.inspection import Row
from api.records.queries import add_audit_entry

POLL_S = 0.25
"""Seconds between two looks at what waits, by this service or by another one."""
SURVEY_S = 15.0
STATIONS = 1000
"""Stations of one look; what is behind them has the next."""
STATIONS_AT_ONCE = 32
BATCH = 50
"""Letters of a station that are read at once."""
TIMEOUT_S = 30.0
"""Seconds that a receiver may take for one."""
MAX_FAILURES = 20
"""Times that a receiver may fail at one letter, as far as it is to blame, before the next one goes on."""
DELETE_BATCH = 1000
"""Letters that are given up, or dropped, in one transaction."""
MAX_ERROR_CHARACTERS = 300
"""Longest word of an error that is kept, letters."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeliveryRules:
    """How long it is tried, and how much is kept.

    Attributes:
        patience: After which age a letter that fails is given up.
        most: Letters for one sink, waiting or dead; beyond it the oldest are dropped, the dead ones first.
    """

    max_age: timedelta
    max_messages: int


class Sender:
    """Looks regularly at what waits.

    Args:
        sink: Takes it.
        box: Has it.
        lease: Says whether this service sends.
        rules: When it is given up.
        metrics: Told what becomes of it.
        pauses: Of the stations that failed.
        now: The time of day.
    """

    def __init__(
        self,
        sink: Sink,
        box: OutboxStore,
        lock: SinkLock,
        rules: DeliveryRules,
        metrics: OutboxMetrics,
        backoff: Backoff | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._sink, self._box, self._lease, self._rules = sink, box, lock, rules
        self._metrics, self._pauses, self._now = metrics, backoff or Backoff(), now
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(STATIONS_AT_ONCE)
        self._after: str | None = None
        self._survey_at = float("-inf")
        self._silent = False

    async def run(self, stopping: asyncio.Event, grace_s: float) -> None:
        """Sends until `stopping`, then what can still be sent within `grace_s`."""
        try:
            while not stopping.is_set():
                await self.poll()
                await _wait(stopping, POLL_S)
            async with asyncio.timeout(grace_s):
                await self.poll()
                await self.drain()
        except TimeoutError:
            logger.warning("Not all was sent to %s before the stop; the next start goes on", self._sink.name)
        finally:
            await self.close()

    async def poll(self) -> None:
        try:
            await self.start_deliveries()
            self._silent = False
        except Exception as error:  # mostly the database's; whatever it is, the next look is made
            if not self._silent:  # once, however long it lasts
                told = "The outbox for %s cannot be read or written: %s"
                unexpected = not isinstance(error, SQLAlchemyError)
                logger.error(told, self._sink.name, error, exc_info=unexpected)
            self._silent = True

    async def start_deliveries(self) -> None:
        """Begins to send for each station of which something waits, but those that are at it or pause.

        Raises:
            SQLAlchemyError: If the database does not answer.
        """
        # What was delivered and cannot be removed would be sent again and again.
        await self._box.delete_delivered()
        held = await self._box.work(self._lease.acquire)
        if time.monotonic() >= self._survey_at:
            self._survey_at = time.monotonic() + SURVEY_S
            await self._survey(may_drop=held)
        if not held:
            for lane in self._lanes.values():  # of before it was lost
                lane.cancel()
            return
        stations = await self._box.read(queries.waiting_stations, self._sink.name, self._after, STATIONS)
        self._after = stations[-1] if len(stations) == STATIONS else None
        for station in stations:
            if station not in self._lanes and self._pauses.is_over(station):
                self._lanes[station] = asyncio.create_task(self._send(station))

    async def drain(self) -> None:
        """Returns when all stations that are being sent for have nothing left, or pause."""
        while self._lanes:
            await asyncio.wait(self._lanes.values())

    async def close(self) -> None:
        """Ends what is under way, and lets another service send."""
        lanes = list(self._lanes.values())
        for lane in lanes:
            lane.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)
        try:
            await self._box.delete_delivered()
        except SQLAlchemyError as error:
            logger.warning("What was sent to %s last may be sent again: %s", self._sink.name, error)
        await self._sink.close()
        await self._box.work(self._lease.release)

    # === One station ===

    async def _send(self, station: str) -> None:
        try:
            while await self._send_some(station):
                pass
        except Exception as error:  # mostly the database's; whatever it is, it shall not come at each look
            self._pauses.begin(station)
            logger.warning("Sending to %s is interrupted: %s", self._sink.name, error)
        finally:
            del self._lanes[station]

    async def _send_some(self, station: str) -> bool:
        """Delivers a few; returns whether there may be more to deliver now."""
        async with self._slots:
            rows = await self._box.read(queries.waiting_messages, self._sink.name, station, BATCH)
            for row in rows:
                if not await self._deliver(row):
                    return False
            # Before the next are read: these would be among them.
            await self._box.delete_delivered()
            return bool(rows)

    async def _deliver(self, row: Row) -> bool:
        """Delivers one; returns whether the next may follow: it was taken, or is given up."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._sink.deliver(OutboxMessage.from_row(row))
        except TimeoutError:
            return await self._note(row, DeliveryError(f"no answer in {TIMEOUT_S:g} s", "unreachable"))
        except DeliveryError as error:
            return await self._note(row, error)
        except Exception as error:  # a fault of ours: it may be this letter's alone
            logger.exception("Sending to %s failed", self._sink.name)
            return await self._note(row, DeliveryError(f"{type(error).__name__}: {error}", "failed"))
        self._box.mark_delivered(row["id"])
        self._pauses.forget(row["station"])
        self._metrics.count_attempt(self._sink.name, "delivered")
        return True

    async def _note(self, row: Row, error: DeliveryError) -> bool:
        """Writes a failure down; returns whether the letter is given up."""
        now, told = self._now(), str(error)[:MAX_ERROR_CHARACTERS]
        station, attempts = row["station"], row["attempts"] + (error.blame == "failed")
        self._metrics.count_attempt(self._sink.name, error.blame)
        if error.blame == "refused" or attempts >= MAX_FAILURES:
            logger.error("An event for %s is given up: %s", self._sink.name, told)
            await self._box.write(queries.mark_dead, row["id"], attempts, told)
            return True
        if not self._pauses.has(station):
            logger.warning("%s takes nothing of station '%s': %s", self._sink.name, station, told)
        seconds = self._pauses.begin(station, error.retry_after_s)
        if row["created_at"] < (old := now - self._rules.max_age):
            why = f"not delivered within {self._rules.max_age}: {told}"
            logger.error("Events for %s are given up: %s", self._sink.name, why)
            await self._box.write(queries.mark_old_dead, self._sink.name, station, old, why, DELETE_BATCH)
        else:
            next_at = now + timedelta(seconds=seconds)
            await self._box.write(queries.save_failure, row["id"], attempts, next_at, told)
        return False

    # === How much there is ===

    async def _survey(self, *, may_drop: bool) -> None:
        """Counts what waits, and drops what is too much."""
        backlogs = await self._box.read(queries.count_backlogs)
        mine = {state: backlogs.get((self._sink.name, state)) for state in (queries.WAITING, queries.DEAD)}
        self._metrics.set_backlogs(self._sink.name, mine[queries.WAITING], mine[queries.DEAD], self._now())
        excess = sum(heap.count for heap in mine.values() if heap) - self._rules.max_messages
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

        dropped = await self._box.write(drop)
        self._metrics.count_dropped(self._sink.name, dropped)
        logger.error("The outbox for %s is full: %d %s events are dropped", self._sink.name, dropped, state)
        return dropped


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
