"""What is counted of candidates, for Prometheus."""

from collections import Counter as Counts

from prometheus_client import Counter

from api.metrics import Metrics
from segdec.schemas import ModelIdentity

SKIP_REASONS = ("busy", "too_large", "replaced", "failed", "not_recorded", "white_level")
"""Why there is no answer of a candidate: too many photographs wait already; there is not the memory; it is no
candidate any more; it failed; the inspection or the answer could not be recorded; its photographs are decoded
with another white level."""


class ShadowMetrics:
    """Counts what candidates answer and what they miss. For the event loop.

    Args:
        metrics: Of the service, which shows these too.
    """

    def __init__(self, metrics: Metrics) -> None:
        model = ("model", "version")
        self._answered = Counter(
            "segdec_shadow_answered", "Photographs that a candidate answered, too.", model, registry=None
        )
        self._differing = Counter(
            "segdec_shadow_differing",
            "Those of them to which it gave another label than was answered.",
            model,
            registry=None,
        )
        self._skipped = Counter(
            "segdec_shadow_skipped",
            "Photographs without a candidate's answer, by reason.",
            (*model, "reason"),
            registry=None,
        )
        self._skips: Counts[tuple[ModelIdentity, str]] = Counts()
        for collector in (self._answered, self._differing, self._skipped):
            metrics.register(collector)

    def initialize(self, candidate: ModelIdentity) -> None:
        """Begins to count for a candidate at 0."""
        for counter in (self._answered, self._differing):
            counter.labels(candidate.name, candidate.version)
        for reason in SKIP_REASONS:
            self._skipped.labels(candidate.name, candidate.version, reason)

    def count_answered(self, candidate: ModelIdentity, *, differs: bool) -> None:
        """Counts an answer that is kept."""
        self._answered.labels(candidate.name, candidate.version).inc()
        self._differing.labels(candidate.name, candidate.version).inc(differs)

    def count_skipped(self, candidate: ModelIdentity, reason: str) -> None:
        """Counts a photograph that was skipped for one of `SKIP_REASONS`."""
        self._skipped.labels(candidate.name, candidate.version, reason).inc()
        self._skips[candidate, reason] += 1

    def skipped_counts(self, candidate: ModelIdentity) -> dict[str, int]:
        """Returns how many were skipped since the start, by reason."""
        return {reason: self._skips[candidate, reason] for reason in SKIP_REASONS}
