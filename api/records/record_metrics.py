"""Prometheus metrics of the record."""

from prometheus_client import Counter, Gauge, Histogram

from api.metrics import MILLISECOND_BUCKETS, Metrics

BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
RESULTS = ("kept", "repeated", "failed")
"""A new row; answered with an earlier row; not stored."""
CAUSES = ("age", "space", "person")
"""Why a picture was deleted."""


class RecordMetrics:
    """Metrics of stored inspections, pictures and reviews; thread-safe.

    Args:
        metrics: Metrics of the service; these are registered there.

    Attributes:
        deleted: Deleted pictures, by one of `CAUSES`.
        lost: Pictures missing from the store.
        usable: Whether inspections can be stored.
        reviews: Reviews, by label.
        undone: Withdrawn reviews.
        waiting: Inspections in the review queue.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._inspections = Counter(
            "segdec_record_inspections", "Inspections to be stored, by result.", ("result",), registry=None
        )
        self._batches = Histogram(
            "segdec_record_batch_size",
            "Inspections stored in one transaction.",
            buckets=BATCH_SIZES,
            registry=None,
        )
        self._took_ms = Histogram(
            "segdec_record_commit_milliseconds",
            "From the first byte of a transaction's pictures to its commit.",
            buckets=MILLISECOND_BUCKETS,
            registry=None,
        )
        self.deleted = Counter(
            "segdec_record_deleted_pictures", "Deleted pictures, by cause.", ("cause",), registry=None
        )
        self.lost = Counter("segdec_record_lost_pictures", "Pictures missing from the store.", registry=None)
        self._stored = Gauge("segdec_record_pictures_bytes", "Size of the stored pictures.", registry=None)
        self._free = Gauge("segdec_record_free_bytes", "Free space for pictures.", registry=None)
        self.usable = Gauge("segdec_record_usable", "1 while inspections can be stored.", registry=None)
        self._short = Gauge(
            "segdec_record_short", "1 while space is short and no picture may be deleted.", registry=None
        )
        self._distrusted = Gauge(
            "segdec_record_clock_distrusted",
            "1 while no picture expires by age because the clock jumped.",
            registry=None,
        )
        self.reviews = Counter("segdec_record_reviews", "Reviews, by label.", ("label",), registry=None)
        self.undone = Counter("segdec_record_undone_reviews", "Withdrawn reviews.", registry=None)
        self.waiting = Gauge(
            "segdec_record_waiting",
            "Inspections in the review queue, updated every 30 seconds.",
            registry=None,
        )
        for result in RESULTS:
            self._inspections.labels(result)
        for cause in CAUSES:
            self.deleted.labels(cause)
        for collector in vars(self).copy().values():
            metrics.register(collector)

    def count_stored(self, new: int, repeated: int, took_ms: float) -> None:
        """Counts the inspections of a transaction."""
        self._inspections.labels("kept").inc(new)
        self._inspections.labels("repeated").inc(repeated)
        self._batches.observe(new + repeated)
        self._took_ms.observe(took_ms)
        self.usable.set(1)

    def count_failed(self, count: int) -> None:
        """Counts inspections that could not be stored."""
        self._inspections.labels("failed").inc(count)
        self.usable.set(0)

    def set_space(
        self, stored_bytes: int, free_bytes: int | None, *, short: bool, is_expiry_suspended: bool
    ) -> None:
        """Sets the gauges of space and clock.

        Args:
            stored_bytes: Size of the stored pictures.
            free_bytes: Free space; None = unlimited.
            short: Whether space is short and no picture may be deleted.
            is_expiry_suspended: Whether expiry by age is suspended.
        """
        self._stored.set(stored_bytes)
        self._free.set(float("inf") if free_bytes is None else free_bytes)
        self._short.set(short)
        self._distrusted.set(is_expiry_suspended)
