"""Runs what tells others, in a thread and an event loop of its own: no inspection waits for a receiver."""

import asyncio
import logging
from collections.abc import Sequence

from sqlalchemy import Engine

from api.delivery.loop_thread import LoopThread
from api.delivery.outbox_metrics import OutboxMetrics
from api.delivery.outbox_store import OutboxStore
from api.delivery.sender import DeliveryRules, Sender
from api.delivery.sink import Sink
from api.delivery.sink_lock import SinkLock

GRACE_S = 3.0
"""Seconds after a stop in which is sent what is still there."""
HANG_S = 3.0
"""Seconds more that connections may take to be closed."""
logger = logging.getLogger(__name__)


class Delivery:
    """Sends the outbox to its sinks.

    Args:
        engine: Of the record's database, for this alone; closed with it.
        sinks: Who is told.
        rules: When an event is given up.
        metrics: Told what becomes of them.
    """

    def __init__(
        self, engine: Engine, sinks: Sequence[Sink], rules: DeliveryRules, metrics: OutboxMetrics
    ) -> None:
        self._engine, self._sinks, self._rules, self._metrics = engine, sinks, rules, metrics
        self._thread = LoopThread("delivery", self._send, _say_ended)

    def start(self) -> None:
        """Begins to send."""
        self._thread.start()

    def close(self) -> None:
        """Sends what can be sent within moments, and ends; the rest is sent after the next start."""
        self._thread.close(GRACE_S + HANG_S)  # a receiver that cannot be let go of is left behind
        self._engine.dispose()

    async def _send(self) -> None:
        box = OutboxStore(self._engine)
        senders = [
            Sender(sink, box, SinkLock(self._engine, sink.name), self._rules, self._metrics)
            for sink in self._sinks
        ]
        try:
            async with asyncio.TaskGroup() as sending:
                for sender in senders:
                    sending.create_task(sender.run(self._thread.stopping, GRACE_S))
        finally:
            box.close()


def _say_ended(error: Exception) -> None:
    logger.critical("Nothing is sent to anybody any more until the next start", exc_info=error)
