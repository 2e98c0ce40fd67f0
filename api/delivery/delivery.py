"""Runs the senders in a thread with its own event loop, so that no inspection waits for a receiver."""

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
"""Seconds after a stop for sending what is left."""
CLOSE_TIMEOUT_S = 3.0
"""Further seconds for closing connections."""
logger = logging.getLogger(__name__)


class Delivery:
    """Sends the outbox to its sinks.

    `engine` must belong to this object alone, because `close` disposes it.
    """

    def __init__(
        self, engine: Engine, sinks: Sequence[Sink], rules: DeliveryRules, metrics: OutboxMetrics
    ) -> None:
        self._engine, self._sinks, self._rules, self._metrics = engine, sinks, rules, metrics
        self._thread = LoopThread("delivery", self._send, _log_failure)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def remarks(self) -> dict[str, str]:
        """Returns the remark of each sink that has one; empty while another replica sends."""
        return {sink.name: sink.remark for sink in self._sinks if sink.remark}

    def close(self) -> None:
        """Sends what it can within seconds and ends; the next start sends the rest."""
        self._thread.close(GRACE_S + CLOSE_TIMEOUT_S)  # a hanging connection is abandoned
        self._engine.dispose()

    async def _send(self) -> None:
        store = OutboxStore(self._engine)
        senders = [
            Sender(sink, store, SinkLock(self._engine, sink.name), self._rules, self._metrics)
            for sink in self._sinks
        ]
        try:
            async with asyncio.TaskGroup() as sending:
                for sender in senders:
                    sending.create_task(sender.run(self._thread.stopping, GRACE_S))
        finally:
            store.close()


def _log_failure(error: Exception) -> None:
    logger.critical("Sending has failed. No events are sent until the next start", exc_info=error)
