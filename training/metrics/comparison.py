"""Comparison of two evaluated runs on the same images: differences and their significance."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segdec.errors import RunError
from training.metrics.intervals import (
    INTERVAL_METRICS,
    RESAMPLES,
    Interval,
    draw_resamples,
    percentile_interval,
    resample_metrics,
)
from training.metrics.metrics import compute_metrics
from training.metrics.photograph_results import PhotographResult
from training.metrics.storage import EvaluatedRun, load_evaluation

Verdict = Literal["better", "not worse", "worse"]

SIGNIFICANCE = 0.05
"""Significance level of McNemar's test."""

MISSED = "false_negative_rate"

DECISIVE = {
    "average_precision": "has the higher average precision",
    "pixel_f1": "has the higher pixel F1",
    MISSED: "misses fewer defects",
}
"""Metrics of the conclusion, in addition to the labels; of all metrics one would soon differ by chance."""


@dataclass(frozen=True)
class MetricDifference:
    """One metric of both runs, and the paired interval of second − first, None with too few groups."""

    first: float | None
    second: float | None
    interval: Interval | None

    @property
    def value(self) -> float | None:
        """Second − first; None if one of them is undefined."""
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def sign(self) -> int:
        """1 if the interval is above 0, −1 if it is below, else 0."""
        return 0 if self.interval is None else int(self.interval.low > 0) - int(self.interval.high < 0)


@dataclass(frozen=True)
class RunComparison:
    """Two runs on the images that both were evaluated on.

    Attributes:
        ignored: Number of images that only one run has.
        first_right: Images that only the first run labels correctly.
        both_wrong: Number of images that neither run labels correctly.
        reviews: Number of images for review of the first and of the second run.
        p_value: Result of McNemar's exact test on the labels.
    """

    first: Path
    second: Path
    photographs: int
    ignored: int
    differences: Mapping[str, MetricDifference]
    first_right: tuple[str, ...]
    second_right: tuple[str, ...]
    both_wrong: int
    reviews: tuple[int, int]
    p_value: float

    @property
    def verdict(self) -> Verdict:
        """Verdict on the second run by significant differences; `worse` if any of them is worse."""
        second_better = [second for second, _ in self._beyond_chance()]
        return "not worse" if not second_better else "better" if all(second_better) else "worse"

    def conclusion(self) -> tuple[str, ...]:
        """Returns the conclusion, in sentences."""
        if found := tuple(sentence for _, sentence in self._beyond_chance()):
            return found
        if all(self.differences[metric].interval is None for metric in DECISIVE):
            return ("There are too few items to measure a significant difference.",)
        return ("The difference is within chance.",)

    def _beyond_chance(self) -> Iterator[tuple[bool, str]]:
        """Yields whether the second run is the better one in a metric, and a sentence."""
        for metric, claim in DECISIVE.items():
            if sign := self.differences[metric].sign:
                second = (sign > 0) != (metric == MISSED)
                yield second, f"'{self.second if second else self.first}' {claim}, by more than chance."
        if self.p_value < SIGNIFICANCE:
            second = len(self.second_right) > len(self.first_right)
            name = self.second if second else self.first
            held = " Photographs for review count as not correct." if any(self.reviews) else ""
            yield second, f"'{name}' labels more photographs correctly, by more than chance.{held}"


def compare_runs(first: Path, second: Path) -> RunComparison:
    """Compares two evaluated runs, given by their folders; see `compare_evaluations`."""
    return compare_evaluations(load_evaluation(first), load_evaluation(second))


def compare_evaluations(one: EvaluatedRun, other: EvaluatedRun) -> RunComparison:
    """Compares two evaluated runs on their common images.
    Raises a `RunError` if they have no common image, or different classes, labels or masks.
    """
    first, second = one.path, other.path
    if one.classes != other.classes:
        raise RunError(
            f"'{first}' has the classes {', '.join(one.classes)}, '{second}' {', '.join(other.classes)}. "
            "Expected the same: compare runs of one task."
        )
    pairs = _pair(one, other)
    before, after = zip(*pairs, strict=True)
    first_right = tuple(a.name for a, b in pairs if a.outcome == "correct" != b.outcome)
    second_right = tuple(a.name for a, b in pairs if a.outcome != "correct" == b.outcome)
    return RunComparison(
        first=first,
        second=second,
        photographs=len(pairs),
        ignored=len(one.results) + len(other.results) - 2 * len(pairs),
        differences=_subtract(before, after, one.classes),
        first_right=first_right,
        second_right=second_right,
        both_wrong=sum(a.outcome != "correct" != b.outcome for a, b in pairs),
        reviews=(sum(a.outcome == "review" for a in before), sum(b.outcome == "review" for b in after)),
        p_value=_test_mcnemar(len(first_right), len(second_right)),
    )


def _pair(one: EvaluatedRun, other: EvaluatedRun) -> list[tuple[PhotographResult, PhotographResult]]:
    mine, theirs = one.results_by_name(), other.results_by_name()
    pairs = [(mine[name], theirs[name]) for name in sorted(mine.keys() & theirs.keys())]
    if not pairs:
        raise RunError(
            f"'{one.path}' and '{other.path}' were evaluated on different photographs. Expected some in "
            "common: evaluate both on the same split of the same data. Folds are joined with: "
            "python -m training join"
        )
    for result, other_result in pairs:
        if _truth(result) != _truth(other_result):
            raise RunError(
                f"'{result.name}' has different labels or masks in '{one.path}' and '{other.path}'. "
                "Expected the same data set: evaluate both again."
            )
    return pairs


def _truth(result: PhotographResult) -> tuple[int, int | None]:
    return result.truth, None if result.pixels is None else result.pixels.tp + result.pixels.fn


def _test_mcnemar(first: int, second: int) -> float:
    """p-value of equal probabilities for both kinds of disagreement."""
    from scipy.stats import binomtest  # takes a second to import

    return float(binomtest(first, first + second).pvalue) if first + second else 1.0


def _subtract(
    before: Sequence[PhotographResult], after: Sequence[PhotographResult], classes: tuple[str, ...]
) -> dict[str, MetricDifference]:
    drawn: dict[str, list[NDArray[np.float64]]] = {name: [] for name in INTERVAL_METRICS}
    for weights in draw_resamples([result.group for result in before], resamples=RESAMPLES, seed=0):
        old, new = resample_metrics(before, weights), resample_metrics(after, weights)
        for name in INTERVAL_METRICS:
            drawn[name].append(new[name] - old[name])
    first, second = (compute_metrics(results, classes).scalars() for results in (before, after))
    return {
        name: MetricDifference(first[name], second[name], percentile_interval(drawn[name]))
        for name in INTERVAL_METRICS
    }
