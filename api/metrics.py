"""Counters, gauges and histograms of the service, for Prometheus."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from api.inference.watchdog import THREAD_STEPS, Step
from segdec.schemas import ModelIdentity

UNMATCHED_ROUTE = "unmatched"
"""Route label of requests for unknown paths, whose number is unlimited."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REJECTION_REASONS = (
    "queue_full",
    "uploads_full",
    "not_ready",
    "draining",
    "stalled",
    "deadline_passed",
    "upload_timeout",
    "client_gone",
    "rate_limit",
    "missing_key",
    "unknown_key",
    "not_admin",
    "admin_off",
    "not_review",
    "review_off",
    "cross_site",
    "record_unavailable",
)
"""Codes of problems for which a request is refused before anything is inspected."""
PHOTOGRAPH_RESULTS = ("inspected", "refused", "failed")
"""Results of a photograph: an answer; a status of 400 to 499; a status of 500 and above."""
CONNECTION_PROBLEMS = {
    "bad_request": 400,
    "request_timeout": 408,
    "request_header_fields_too_large": 431,
    "tls_handshake": None,
}
"""Codes and statuses of connections without a valid request: invalid or incomplete HTTP, or no TLS."""
STEPS = ("queue", "decode", "infer", "encode")

MILLISECOND_BUCKETS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
SCORE_BUCKETS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
"""Bucket ends, finer near the scores of good and of clearly defective parts."""
LOG_ODDS_BUCKETS = tuple(range(-12, 13))
"""Bucket ends at equal distances: a shift of all photographs has the same width everywhere."""
DISTANCE_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.5, 2, 5, 10)
"""Bucket ends of distances as multiples of the limit."""


class Metrics:
    """Counts requests, rejections and answers, in a registry of its own.

    Replaced models and versions keep their counters, so that rates and sums continue over a reload; only
    `segdec_model_info` drops them. Any thread may count; `set_models` and `render` belong to the event loop.

    Args:
        queue_depth: Returns the number of photographs that wait for the network.
        running_s: Returns the age of the oldest running step of a kind, seconds.

    Attributes:
        counter, gauge, histogram: Make a metric of the registry.
    """

    def __init__(
        self,
        queue_depth: Callable[[], int],
        ready: Callable[[], bool],
        stalled: Callable[[], bool] = lambda: False,
        running_s: Callable[[Step], float] = lambda _: 0.0,
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # nothing uses these series
        self._registry = registry = CollectorRegistry()
        self.counter = partial(Counter, registry=registry)
        self.histogram = partial(Histogram, registry=registry)
        self.gauge = partial(Gauge, registry=registry)
        self._requests = self.counter(
            "segdec_requests",
            "Requests by method, path template and status code.",
            ("method", "route", "code"),
        )
        self._request_ms = self.histogram(
            "segdec_request_duration_milliseconds",
            "From a request's first byte to the end of its answer.",
            ("method", "route"),
            buckets=MILLISECOND_BUCKETS,
        )
        self._rejections = self.counter("segdec_rejections", "Requests given up, by reason.", ("reason",))
        for reason in REJECTION_REASONS:  # at 0 from the start, so that the first one appears as an increase
            self._rejections.labels(reason)
        self._add_problem_metrics()
        self._batches = self.histogram(
            "segdec_batch_size", "Photographs that went through the network together.", buckets=BATCH_SIZES
        )
        self._add_model_metrics()
        self._models = self.gauge(
            "segdec_model_info",
            "Models that are served; the value is always 1.",
            ("model", "version", "sha256", "aliases"),
        )
        for name, text, function in (
            ("segdec_queue_depth", "Photographs that wait for the network.", queue_depth),
            ("segdec_ready", "1 while requests are answered, else 0.", ready),
            ("segdec_stalled", "1 while a step in a thread hangs, else 0.", stalled),
        ):
            self.gauge(name, text).set_function(function)
        running = self.gauge(
            "segdec_running_seconds",
            "For how long the oldest step of each kind that is not done has been running; 0 if none runs.",
            ("step",),
        )
        for step in THREAD_STEPS:
            running.labels(step).set_function(partial(running_s, step))
        ProcessCollector(registry=registry)  # resident memory, open files, processor time

    def _add_problem_metrics(self) -> None:
        self._problems = self.counter(
            "segdec_problems",
            "Errors answered, and photographs refused inside a batch, by code, status and name of the key.",
            ("code", "status", "key"),
        )
        self._photographs = self.counter(
            "segdec_photographs",
            "Photographs that were sent, by the name of the key and what became of them.",
            ("key", "result"),
        )
        self.initialize_keys(())
        for code, status in CONNECTION_PROBLEMS.items():
            self._problems.labels(code, str(status or ""), "")

    def _add_model_metrics(self) -> None:
        model = ("model", "version")
        self._steps_ms = [
            self.histogram(
                f"segdec_{step}_milliseconds",
                f"Time of an answer spent in the step '{step}'.",
                model,
                buckets=MILLISECOND_BUCKETS,
            )
            for step in STEPS
        ]
        self._scores = self.histogram("segdec_score", "Scores, 1 − P(good).", model, buckets=SCORE_BUCKETS)
        self._log_odds = self.histogram(
            "segdec_log_odds",
            "The network's own log-odds of a defect, before calibration.",
            model,
            buckets=LOG_ODDS_BUCKETS,
        )
        self._decisions = self.counter("segdec_decisions", "Decisions by label.", (*model, "label"))
        self._distances = self.histogram(
            "segdec_training_distance",
            "Distances of photographs to those of the training, as multiples of the limit; above 1 a "
            "photograph is unlike them.",
            (*model, "measure"),
            buckets=DISTANCE_BUCKETS,
        )

    def initialize_keys(self, names: Iterable[str]) -> None:
        """Starts the counters of the keys `names` at 0, so that the first refusal of each is visible."""
        for key in ("", *names):
            for result in PHOTOGRAPH_RESULTS:
                self._photographs.labels(key, result)

    def initialize_labels(self, model: ModelIdentity, labels: Iterable[str]) -> None:
        """Starts the counters of `labels` at 0: the labels that `model` may answer with."""
        for label in labels:
            self._decisions.labels(model.name, model.version, label)

    def count_request(self, method: str, route: str, status: int, duration_ms: float | None) -> None:
        """Counts an answered request. `route` is a path template, never the path itself; `duration_ms` is the
        time from its first byte to the end of its answer, None if unknown.
        """
        method = method if method in METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        if duration_ms is not None:
            self._request_ms.labels(method, route).observe(duration_ms)

    def count_problem(self, code: str, status: int | None, key: str = "") -> None:
        """Counts an error by its code, the status of the answer (or of the photograph inside a batch; None
        if there was no answer) and the name of the API key.
        """
        self._problems.labels(code, str(status or ""), key).inc()

    def count_photographs(self, status: int, key: str, count: int = 1) -> None:
        """Counts photographs by the status of the answer, or of each inside a batch, and the name of the API
        key.
        """
        result = PHOTOGRAPH_RESULTS[0 if status < 400 else 1 if status < 500 else 2]
        self._photographs.labels(key, result).inc(count)

    def count_rejection(self, reason: str) -> None:
        """Counts a request that was refused for `reason`, one of `REJECTION_REASONS`."""
        self._rejections.labels(reason).inc()

    def observe_batch(self, size: int) -> None:
        """Counts a run of the network on `size` photographs, without padding."""
        self._batches.observe(size)

    def observe_answer(
        self,
        model: ModelIdentity,
        label: str,
        score: float,
        log_odds: float,
        *,
        queue_ms: float,
        decode_ms: float,
        infer_ms: float,
        encode_ms: float,
    ) -> None:
        version = model.name, model.version
        for step_ms, took_ms in zip(self._steps_ms, (queue_ms, decode_ms, infer_ms, encode_ms), strict=True):
            step_ms.labels(*version).observe(took_ms)
        self._scores.labels(*version).observe(score)
        self._log_odds.labels(*version).observe(log_odds)
        self._decisions.labels(model.name, model.version, label).inc()

    def observe_distances(self, model: ModelIdentity, distances: Mapping[str, float]) -> None:
        """Counts the distances of a photograph to those of the training by measure."""
        for measure, distance in distances.items():
            self._distances.labels(model.name, model.version, measure).observe(distance)

    def set_models(self, models: Iterable[tuple[ModelIdentity, Sequence[str]]]) -> None:
        """Sets the served models: identities with the aliases of their versions, such as `stable`."""
        self._models.clear()
        for identity, aliases in models:
            sha256 = identity.sha256 or ""
            self._models.labels(identity.name, identity.version, sha256, ",".join(aliases)).set(1)

    def register(self, collector: Collector) -> None:
        self._registry.register(collector)

    def render(self) -> tuple[bytes, str]:
        """Returns all series in Prometheus' text format, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
