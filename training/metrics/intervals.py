"""Bootstrap intervals of metrics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import PartShare
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_counts import PixelCounts

RESAMPLES = 2000
LEVEL = 0.95
MIN_GROUPS = 5

MIN_VALID_SHARE = 0.5
"""Share of the resamples in which a metric must be defined."""

CHUNK = 1 << 21
"""Weights computed at a time, to bound the memory."""

INTERVAL_METRICS = (
    "average_precision",
    "auroc",
    "false_negative_rate",
    "false_positive_rate",
    "label_accuracy",
    "pixel_f1",
    "pixel_iou",
)
"""Metrics with an interval."""

RATES = {"false_negative_rate": (True,), "false_positive_rate": (False,), "label_accuracy": (True, False)}
"""Metrics that are shares of the defective images (True), of the good ones (False), or of both."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A 95 % interval.

    Attributes:
        resamples: Resamples in which the metric is defined; 0 for an exact interval.
        method: `bootstrap`: percentiles over resampled groups. `exact`: Clopper-Pearson over the groups, for
            a rate of exactly 0 or 1, in which all resamples agree.
    """

    low: float
    high: float
    resamples: int
    method: Literal["bootstrap", "exact"] = "bootstrap"


def bootstrap_intervals(
    runs: Sequence[Sequence[PhotographResult]], *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Interval | None]:
    """Computes 95 % bootstrap intervals of `INTERVAL_METRICS`, by name.

    Whole groups are resampled: images of one part are similar, and resampling single images would give
    intervals that are too narrow. The metrics of several runs on the same images are averaged. None with
    fewer than `MIN_GROUPS` groups or too few valid resamples.
    """
    ordered = [sorted(results, key=lambda result: result.name) for results in runs]
    drawn: dict[str, list[Floats]] = {name: [] for name in INTERVAL_METRICS}
    for weights in draw_resamples([result.group for result in ordered[0]], resamples=resamples, seed=seed):
        metrics = [resample_metrics(results, weights) for results in ordered]
        for name in INTERVAL_METRICS:
            drawn[name].append(np.mean([each[name] for each in metrics], axis=0))
    return {name: _widen(name, percentile_interval(values), ordered[0]) for name, values in drawn.items()}


def draw_resamples(groups: Sequence[str], *, resamples: int, seed: int) -> Iterator[Floats]:
    """Draws groups with replacement, as many as there are; yields the weights of the images, [b, N].

    The sum of all b is `resamples`. Nothing is drawn with fewer than `MIN_GROUPS`.
    """
    names, places = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    count = len(names)
    if count < MIN_GROUPS:
        return
    generator = np.random.default_rng(seed)
    step = max(1, CHUNK // len(groups))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = generator.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        yield weights[:, places].astype(np.float64)


def resample_metrics(results: Sequence[PhotographResult], weights: Floats) -> dict[str, Floats]:
    """Returns the `INTERVAL_METRICS` [B] of N images with the weights [B, N]; NaN where one is undefined."""
    defective = np.array([result.truth != 0 for result in results])
    detected = np.array([result.detected for result in results])
    passed = np.array([result.passed for result in results])
    right = np.array([result.outcome == "correct" for result in results])
    pixels = [result.pixels or PixelCounts() for result in results]
    tp, fp, fn = (weights @ [getattr(each, kind) for each in pixels] for kind in ("tp", "fp", "fn"))
    precision, area = _rank(defective, np.array([result.score for result in results]), weights)
    values = (
        precision,
        area,
        _divide(weights @ (defective & passed), weights @ defective),
        _divide(weights @ (detected & ~defective), weights @ ~defective),
        _divide(weights @ right, weights.sum(axis=1)),
        _divide(2 * tp, np.where(tp + fn > 0, 2 * tp + fp + fn, 0)),
        _divide(tp, np.where(tp + fn > 0, tp + fp + fn, 0)),
    )
    return dict(zip(INTERVAL_METRICS, values, strict=True))


def _rank(defective: NDArray[np.bool_], scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted average precision and AUROC [B]; equal scores are one threshold."""
    order = np.argsort(-scores, kind="stable")
    last_of_equals = np.flatnonzero(np.diff(scores[order], append=-np.inf))
    ordered = weights[:, order]
    above = np.cumsum(ordered, axis=1)[:, last_of_equals]
    hits = np.cumsum(ordered * defective[order], axis=1)[:, last_of_equals]
    alarms = above - hits
    new_hits = np.diff(hits, prepend=0.0)
    precision = np.sum(new_hits * hits / np.maximum(above, 1), axis=1)
    area = np.sum(np.diff(alarms, prepend=0.0) * (hits - new_hits / 2), axis=1)
    positives, negatives = hits[:, -1], alarms[:, -1]
    both = positives * negatives > 0
    return _divide(precision, np.where(both, positives, 0)), _divide(area, positives * negatives)


def _divide(part: Floats, whole: Floats) -> Floats:
    quotient = np.full(part.shape, np.nan)
    return np.asarray(np.divide(part, whole, out=quotient, where=whole > 0))


def percentile_interval(chunks: Sequence[Floats]) -> Interval | None:
    """Returns the middle 95 % of resampled values, given in chunks [b]; None if too few are valid."""
    values = np.concatenate(chunks) if chunks else np.empty(0)
    valid = values[~np.isnan(values)]
    if not valid.size or len(valid) < MIN_VALID_SHARE * len(values):
        return None
    low, high = np.quantile(valid, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high), len(valid))


def _widen(name: str, interval: Interval | None, results: Sequence[PhotographResult]) -> Interval | None:
    """An exact interval instead of one without width, for rates of 0 and 1."""
    if interval is None or name not in RATES or not interval.low == interval.high in (0, 1):
        return interval
    groups = len({result.group for result in results if (result.truth != 0) in RATES[name]})
    return exact_interval(groups * int(interval.low), groups)


def exact_interval(count: int, total: int) -> Interval:
    """Returns the 95 % interval of a share of independent parts (Clopper and Pearson 1934)."""
    from scipy.stats import binomtest  # takes a second to import

    exact = binomtest(count, total).proportion_ci(LEVEL, method="exact")
    return Interval(float(exact.low), float(exact.high), 0, "exact")


def count_parts(counted: NDArray[np.bool_]) -> PartShare | None:
    """Returns the share of the parts that are counted, [N], with its `exact_interval`; None without parts."""
    if not len(counted):
        return None
    count = int(counted.sum())
    interval = exact_interval(count, len(counted))
    return PartShare(count=count, parts=len(counted), low=interval.low, high=interval.high)
