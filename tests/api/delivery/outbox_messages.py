"""Events to be sent, a sink for them, and a sender that a test runs step by step."""

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Self

from sqlalchemy import Engine, select

from api.database.database import write_transaction
from api.delivery.backoff import Backoff
from api.delivery.outbox_metrics import OutboxMetrics
from api.delivery.outbox_store import OutboxStore
from api.delivery.sender import DeliveryRules, Sender
from api.delivery.sink import DeliveryError, OutboxMessage
from api.delivery.sink_lock import SinkLock
from api.metrics import Metrics
from api.record.inspection import Row
from api.record.outbox import Outbox
from api.record.tables import outbox
from tests.api.record.filled_record import make_row

RULES = DeliveryRules(max_age=timedelta(hours=72), max_messages=1_000_000)


def inspection(number: int, station: str, **more: object) -> Row:
    """Returns the columns of an inspection that its event contains."""
    columns = {"id": number, "part_id": f"{station}-{number}", "inspected_at": datetime.now(UTC), **more}
    return make_row(number, station=station, **columns)


class EventSource:
    """Queues events of inspections, numbered from 1, each part `STATION-NUMBER`."""

    def __init__(self, engine: Engine, *sinks: str) -> None:
        self.engine, self.sinks = engine, sinks or ("fake",)
        self._numbers = itertools.count(1)

    def inspect(self, *stations: str) -> None:
        """Queues the event of one part of each station, in this order."""
        with write_transaction(self.engine) as connection:
            rows = [inspection(next(self._numbers), station) for station in stations]
            Outbox(self.sinks).enqueue_inspected(connection, rows)

    def left(self, state: str = "waiting") -> list[str]:
        """Returns the parts whose events are still stored."""
        with self.engine.connect() as connection:
            statement = select(outbox.c.event).where(outbox.c.state == state).order_by(outbox.c.id)
            return [part_of(event) for event in connection.execute(statement).scalars()]


def part_of(event: str) -> str:
    return json.loads(event)["data"]["part_id"]


class FakeSink:
    """Accepts parts (`taken`), but raises the exception in `failures` for a station or part."""

    def __init__(self, name: str = "fake") -> None:
        self.name = name
        self.taken: list[str] = []
        self.failures: dict[str, Exception] = {}
        self.tried: list[str] = []
        self.is_closed = False

    async def deliver(self, message: OutboxMessage) -> None:
        part = part_of(message.event)
        self.tried.append(part)
        for name in (message.station, part):
            if name in self.failures:
                raise self.failures[name]
        self.taken.append(part)

    async def close(self) -> None:
        self.is_closed = True

    def taken_of(self, station: str) -> list[str]:
        return [part for part in self.taken if part.rpartition("-")[0] == station]


UNREACHABLE = DeliveryError("connection refused", "unreachable")
REFUSED = DeliveryError("HTTP 400 Bad Request", "refused")
FAILED = DeliveryError("HTTP 500 Internal Server Error", "failed")


class Sending:
    """A sender that a test runs one turn at a time."""

    def __init__(
        self, engine: Engine, sink: FakeSink, metrics: Metrics, rules: DeliveryRules = RULES
    ) -> None:
        self.seconds = 0.0
        self.now = datetime.now(UTC)
        self._store = OutboxStore(engine, delete_interval_s=0.0)
        self._metrics = OutboxMetrics(metrics, [sink.name])
        backoff = Backoff(lambda: self.seconds, lambda: 1.0)
        lock = SinkLock(engine, sink.name)
        self.sender = Sender(sink, self._store, lock, rules, self._metrics, backoff, lambda: self.now)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.sender.close()
        self._store.close()

    async def turn(self) -> None:
        """Starts the deliveries that are due, and waits for them."""
        await self.sender.start_deliveries()
        await self.sender.drain()
