"""What the record counts and measures, for Prometheus."""

from prometheus_client import Counter, Gauge, Histogram

from api.metrics import MILLISECOND_BUCKETS, Metrics

BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
RESULTS = ("kept", "repeated", "failed")
"""A row of its own; answered by an earlier row; not stored."""
CAUSES = ("age", "space", "person")
"""Why a picture was deleted."""


class RecordMetrics:
    """Counts what is kept and deleted. Everything here is safe to call from any thread.

    Args:
        metrics: Of the service, which shows these too.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._inspections = Counter(
            "segdec_record_inspections",
            "Inspections that were to be kept, by what became of them.",
            ("result",),
            registry=None,
        )
        self._batches = Histogram(
            "segdec_record_batch_size",
            "Inspections that were kept by one transaction.",
            buckets=BATCH_SIZES,
            registry=None,
        )
        self._took_ms = Histogram(
            "segdec_record_commit_milliseconds",
            "From the first byte of a transaction's pictures to its commit.",
            buckets=MILLISECOND_BUCKETS,
            registry=None,
        )
        self._deleted = Counter(
            "segdec_record_deleted_pictures", "Pictures deleted, by cause.", ("cause",), registry=None
        )
        self._lost = Counter(
            "segdec_record_lost_pictures", "Pictures that were not where they should be.", registry=None
        )
        self._stored = Gauge("segdec_record_pictures_bytes", "Size of the pictures kept.", registry=None)
        self._free = Gauge("segdec_record_free_bytes", "Space left for pictures.", registry=None)
        self._usable = Gauge(
            "segdec_record_usable", "1 while inspections can be kept, as far as is known.", registry=None
        )
        self._short = Gauge(
            "segdec_record_short", "1 while space is short and no picture may be deleted.", registry=None
        )
        self._distrusted = Gauge(
            "segdec_record_clock_distrusted",
            "1 while no picture is deleted for its age, since the clock jumped.",
            registry=None,
        )
        self._reviews = Counter(
            "segdec_record_reviews", "What people said of inspections, by label.", ("label",), registry=None
        )
        self._undone = Counter("segdec_record_undone_reviews", "Reviews that were taken back.", registry=None)
        self._waiting = Gauge(
            "segdec_record_waiting", "Inspections that wait for a review, each half minute.", registry=None
        )
        for result in RESULTS:
            self._inspections.labels(result)
        for cause in CAUSES:
            self._deleted.labels(cause)
        counted = (self._inspections, self._batches, self._took_ms, self._deleted, self._lost)
        states = (self._stored, self._free, self._usable, self._short, self._distrusted)
        for collector in (*counted, *states, self._reviews, self._undone, self._waiting):
            metrics.register(collector)

    def count_stored(self, new: int, repeated: int, took_ms: float) -> None:
        """Counts the inspections of a transaction."""
        self._inspections.labels("kept").inc(new)
        self._inspections.labels("repeated").inc(repeated)
        self._batches.observe(new + repeated)
        self._took_ms.observe(took_ms)
        self._usable.set(1)

    def count_failed(self, count: int) -> None:
        """Counts inspections that could not be stored."""
        self._inspections.labels("failed").inc(count)
        self._usable.set(0)

    def set_usable(self, usable: bool) -> None:
        """Says whether inspections can be kept."""
        self._usable.set(usable)

    def count_deleted(self, cause: str, count: int) -> None:
        """Counts pictures that were deleted for one of `CAUSES`."""
        self._deleted.labels(cause).inc(count)

    def count_lost(self) -> None:
        """Counts a picture that is not where it should be."""
        self._lost.inc()

    def count_review(self, label: str) -> None:
        """Counts what a person said."""
        self._reviews.labels(label).inc()

    def count_undone(self) -> None:
        """Counts a review that was taken back."""
        self._undone.inc()

    def set_waiting(self, count: int) -> None:
        """Says how many inspections wait for a review."""
        self._waiting.set(count)

    def set_space(self, stored_bytes: int, free_bytes: int | None, *, short: bool, distrusted: bool) -> None:
        """Says how much there is.

        Args:
            stored_bytes: Of the pictures.
            free_bytes: Left for more; None where there is no end.
            short: Whether it is less than the rules want, and no picture may be deleted.
            distrusted: Whether ages are not believed.
        """
        self._stored.set(stored_bytes)
        self._free.set(float("inf") if free_bytes is None else free_bytes)
        self._short.set(short)
        self._distrusted.set(distrusted)
