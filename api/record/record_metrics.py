"""Prometheus metrics of the record."""

from api.metrics import BATCH_SIZES, MILLISECOND_BUCKETS, Metrics

RESULTS = ("kept", "repeated", "failed")
"""A new row; answered with an earlier row; not stored."""
CAUSES = ("age", "space", "person")
"""Why a picture was deleted."""


class RecordMetrics:
    """Metrics of inspections, pictures and reviews, registered in those of the service; thread-safe."""

    def __init__(self, metrics: Metrics) -> None:
        counter, gauge, histogram = metrics.counter, metrics.gauge, metrics.histogram
        self._inspections = counter(
            "segdec_record_inspections", "Inspections to be stored, by result.", ("result",)
        )
        self._batches = histogram(
            "segdec_record_batch_size", "Inspections stored in one transaction.", buckets=BATCH_SIZES
        )
        self._took_ms = histogram(
            "segdec_record_commit_milliseconds",
            "From the first byte of a transaction's pictures to its commit.",
            buckets=MILLISECOND_BUCKETS,
        )
        self.deleted = counter("segdec_record_deleted_pictures", "Deleted pictures, by cause.", ("cause",))
        self.lost = counter("segdec_record_lost_pictures", "Pictures missing from the store.")
        self._stored = gauge("segdec_record_pictures_bytes", "Size of the stored pictures.")
        self._free = gauge("segdec_record_free_bytes", "Free space for pictures.")
        self.usable = gauge("segdec_record_usable", "1 while inspections can be stored.")
        self._short = gauge(
            "segdec_record_short", "1 while space is short and deleting pictures would not help."
        )
        self._distrusted = gauge(
            "segdec_record_clock_distrusted", "1 while no picture expires by age because the clock jumped."
        )
        self.reviews = counter("segdec_record_reviews", "Reviews, by label.", ("label",))
        self.undone = counter("segdec_record_undone_reviews", "Withdrawn reviews.")
        self.waiting = gauge(
            "segdec_record_waiting", "Inspections in the review queue, updated every 30 seconds."
        )
        for result in RESULTS:
            self._inspections.labels(result)
        for cause in CAUSES:
            self.deleted.labels(cause)

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
        """Sets the gauges of space and suspended expiry; `free_bytes` is None if the space is unlimited."""
        self._stored.set(stored_bytes)
        self._free.set(float("inf") if free_bytes is None else free_bytes)
        self._short.set(short)
        self._distrusted.set(is_expiry_suspended)
