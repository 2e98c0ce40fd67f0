"""Prometheus metrics of the outbox."""

from collections.abc import Sequence
from datetime import datetime

from prometheus_client import Counter, Gauge

from api.metrics import Metrics
from api.records.outbox_queries import Backlog

RESULTS = ("delivered", "refused", "failed", "unreachable")
"""Results of an attempt: acknowledged; rejected permanently; failed, maybe because of the event; receiver not
reachable or temporarily unavailable.
"""


class OutboxMetrics:
    """Metrics of sent events; thread-safe.

    Args:
        metrics: Metrics of the service; these are registered there.
        sinks: Names of the sinks.

    Attributes:
        attempts: Attempts by sink and one of `RESULTS`.
        dropped: Dropped events by sink.
    """

    def __init__(self, metrics: Metrics, sinks: Sequence[str]) -> None:
        self.attempts = Counter(
            "segdec_outbox_attempts",
            "Attempts to deliver an event, by result.",
            ("sink", "result"),
            registry=None,
        )
        self.dropped = Counter(
            "segdec_outbox_dropped", "Events dropped because of the limit.", ("sink",), registry=None
        )
        self._waiting = Gauge("segdec_outbox_waiting", "Waiting events.", ("sink",), registry=None)
        self._oldest = Gauge(
            "segdec_outbox_oldest_seconds", "Age of the oldest waiting event.", ("sink",), registry=None
        )
        self._dead = Gauge("segdec_outbox_dead", "Dead letters.", ("sink",), registry=None)
        for sink in sinks:
            for result in RESULTS:
                self.attempts.labels(sink, result)
            for collector in (self.dropped, self._waiting, self._oldest, self._dead):
                collector.labels(sink)
        for collector in (self.attempts, self.dropped, self._waiting, self._oldest, self._dead):
            metrics.register(collector)

    def set_backlogs(self, sink: str, waiting: Backlog | None, dead: Backlog | None, now: datetime) -> None:
        """Sets the gauges of a sink; None = no messages in that state."""
        self._waiting.labels(sink).set(waiting.count if waiting else 0)
        self._dead.labels(sink).set(dead.count if dead else 0)
        age_s = max((now - waiting.oldest).total_seconds(), 0.0) if waiting else 0.0
        self._oldest.labels(sink).set(age_s)
