"""What the outbox counts, for Prometheus."""

from collections.abc import Sequence
from datetime import datetime

from prometheus_client import Counter, Gauge

from api.metrics import Metrics
from api.records.outbox_queries import Backlog

RESULTS = ("delivered", "refused", "failed", "unreachable")
"""Of an attempt: taken; never to be taken; not taken; not reached, or no time for it now."""


class OutboxMetrics:
    """Counts what is sent. Everything here is safe to call from any thread.

    Args:
        metrics: Of the service, which shows these too.
        sinks: Names of all that are sent to.
    """

    def __init__(self, metrics: Metrics, sinks: Sequence[str]) -> None:
        self._attempts = Counter(
            "segdec_outbox_attempts",
            "Attempts to deliver an event, by what became of them.",
            ("sink", "result"),
            registry=None,
        )
        self._dropped = Counter(
            "segdec_outbox_dropped",
            "Events that were dropped, for there were too many.",
            ("sink",),
            registry=None,
        )
        self._waiting = Gauge("segdec_outbox_waiting", "Events that wait.", ("sink",), registry=None)
        self._oldest = Gauge(
            "segdec_outbox_oldest_seconds", "Age of the event that waits longest.", ("sink",), registry=None
        )
        self._dead = Gauge("segdec_outbox_dead", "Events that were given up.", ("sink",), registry=None)
        for sink in sinks:
            for result in RESULTS:
                self._attempts.labels(sink, result)
            for collector in (self._dropped, self._waiting, self._oldest, self._dead):
                collector.labels(sink)
        for collector in (self._attempts, self._dropped, self._waiting, self._oldest, self._dead):
            metrics.register(collector)

    def count_attempt(self, sink: str, result: str) -> None:
        """Counts an attempt by one of `RESULTS`."""
        self._attempts.labels(sink, result).inc()

    def count_dropped(self, sink: str, count: int) -> None:
        """Counts events that were dropped."""
        self._dropped.labels(sink).inc(count)

    def set_backlogs(self, sink: str, waiting: Backlog | None, dead: Backlog | None, now: datetime) -> None:
        """Says how much there is; None of what there is not."""
        self._waiting.labels(sink).set(waiting.count if waiting else 0)
        self._dead.labels(sink).set(dead.count if dead else 0)
        age_s = max((now - waiting.oldest).total_seconds(), 0.0) if waiting else 0.0
        self._oldest.labels(sink).set(age_s)
