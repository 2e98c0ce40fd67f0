"""Prometheus metrics of the outbox."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from prometheus_client import Counter, Gauge

from api.metrics import Metrics
from api.record.outbox_queries import Backlog

RESULTS = ("delivered", "refused", "failed", "unreachable")
"""Results of an attempt: acknowledged; rejected permanently; failed, maybe because of the event; receiver not
reachable or temporarily unavailable.
"""


class OutboxMetrics:
    """Metrics of sent events, registered in those of the service; thread-safe."""

    def __init__(self, metrics: Metrics, sinks: Sequence[str]) -> None:
        counter, gauge = partial(Counter, registry=None), partial(Gauge, registry=None)
        self.attempts = counter(
            "segdec_outbox_attempts", "Attempts to deliver an event, by result.", ("sink", "result")
        )
        self.dropped = counter("segdec_outbox_dropped", "Events dropped because of the limit.", ("sink",))
        self._waiting = gauge("segdec_outbox_waiting", "Waiting events.", ("sink",))
        self._oldest = gauge("segdec_outbox_oldest_seconds", "Age of the oldest waiting event.", ("sink",))
        self._dead = gauge("segdec_outbox_dead", "Dead letters.", ("sink",))
        for sink in sinks:
            for result in RESULTS:
                self.attempts.labels(sink, result)
            for collector in (self.dropped, self._waiting, self._oldest, self._dead):
                collector.labels(sink)
        for collector in vars(self).copy().values():
            metrics.register(collector)

    def set_backlogs(self, sink: str, waiting: Backlog, dead: Backlog, now: datetime) -> None:
        """Sets the gauges of a sink."""
        self._waiting.labels(sink).set(waiting.count)
        self._dead.labels(sink).set(dead.count)
        age_s = 0.0 if waiting.oldest is None else (now - waiting.oldest).total_seconds()
        self._oldest.labels(sink).set(max(age_s, 0.0))
