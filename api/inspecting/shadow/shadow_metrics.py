"""Counters of candidates, for Prometheus."""

from collections import Counter

from api.metrics import Metrics
from segdec.schemas import ModelIdentity

SKIP_REASONS = ("busy", "too_large", "replaced", "failed", "not_recorded", "white_level")
"""Why a candidate gave no answer: too many photographs wait; the memory is too small; it is no longer the
candidate; it failed; the inspection or the answer could not be stored; its white level differs."""


class ShadowMetrics:
    """Counts the answers of candidates and the skipped photographs. For the event loop."""

    def __init__(self, metrics: Metrics) -> None:
        model = ("model", "version")
        self._answered = metrics.counter(
            "segdec_shadow_answered", "Photographs that a candidate also answered.", model
        )
        self._differing = metrics.counter(
            "segdec_shadow_differing",
            "Answers of a candidate with another label than the stable version.",
            model,
        )
        self._not_inspected = metrics.counter(
            "segdec_shadow_not_inspected",
            "Photographs that a candidate did not inspect because they are unlike its training.",
            model,
        )
        self._skipped = metrics.counter(
            "segdec_shadow_skipped",
            "Photographs without an answer of the candidate, by reason.",
            (*model, "reason"),
        )
        self._skip_counts: Counter[tuple[ModelIdentity, str]] = Counter()

    def initialize(self, candidate: ModelIdentity) -> None:
        """Starts the counters of a candidate at 0."""
        for counter in (self._answered, self._differing, self._not_inspected):
            counter.labels(candidate.name, candidate.version)
        for reason in SKIP_REASONS:
            self._skipped.labels(candidate.name, candidate.version, reason)

    def count_answered(self, candidate: ModelIdentity, *, differs: bool, inspected: bool) -> None:
        self._answered.labels(candidate.name, candidate.version).inc()
        self._differing.labels(candidate.name, candidate.version).inc(differs)
        self._not_inspected.labels(candidate.name, candidate.version).inc(not inspected)

    def count_skipped(self, candidate: ModelIdentity, reason: str) -> None:
        """Counts a photograph that was skipped for one of `SKIP_REASONS`."""
        self._skipped.labels(candidate.name, candidate.version, reason).inc()
        self._skip_counts[candidate, reason] += 1

    def skipped_counts(self, candidate: ModelIdentity) -> dict[str, int]:
        """Returns the number of skipped photographs since the start, by reason."""
        return {reason: self._skip_counts[candidate, reason] for reason in SKIP_REASONS}
