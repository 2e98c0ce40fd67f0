"""Two evaluated runs on the same photographs: what differs, and whether by more than chance."""

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
"""Probability below which equal models are not believed to differ so much."""

MISSED = "false_negative_rate"

DECISIVE = {
    "average_precision": "has the higher average precision",
    "pixel_f1": "has the higher pixel F1",
    MISSED: "misses fewer defects",
}
"""Figures of the conclusion, beside the labels; with all of them one would soon differ by chance."""


@dataclass(frozen=True)
class Difference:
    """One figure of both runs.

    Attributes:
        first: That of the first run.
        second: That of the second run.
        interval: Of second − first, from groups drawn alike for both; None where they are too few.
    """

    first: float | None
    second: float | None
    interval: Interval | None

    @property
    def value(self) -> float | None:
        """Second − first; None where one of them is undefined."""
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.interval is not None and (self.interval.low > 0 or self.interval.high < 0)


@dataclass(frozen=True)
class Comparison:
    """Two runs on the photographs that both were evaluated on.

    Attributes:
        first: Folder of the first run.
        second: Folder of the second run.
        photographs: How many both have.
        left_out: How many only one of them has.
        differences: By name of the figure.
        first_right: Photographs that only the first run labels right.
        second_right: Photographs that only the second run labels right.
        both_wrong: How many neither labels right.
        reviews: How many the first and the second run leave for review, which neither is right nor an error.
        p_value: Of McNemar's exact test on the labels: how probable so uneven a division of
            `first_right` and `second_right` is between equal models.
    """

    first: Path
    second: Path
    photographs: int
    left_out: int
    differences: Mapping[str, Difference]
    first_right: tuple[str, ...]
    second_right: tuple[str, ...]
    both_wrong: int
    reviews: tuple[int, int]
    p_value: float

    @property
    def verdict(self) -> Verdict:
        """Of the second run beside the first, by what lies beyond chance; worse if it is so in any of it."""
        found = [second for second, _ in self._beyond_chance()]
        return "not worse" if not found else "better" if all(found) else "worse"

    def conclusion(self) -> tuple[str, ...]:
        """Returns what can be said of the two, in sentences."""
        if found := tuple(sentence for _, sentence in self._beyond_chance()):
            return found
        if all(self.differences[figure].interval is None for figure in DECISIVE):
            return ("There are too few items to tell a difference from chance.",)
        return ("The difference is within chance.",)

    def _beyond_chance(self) -> Iterator[tuple[bool, str]]:
        """Yields whether the second run is the better one in something, and a sentence that says it."""
        for figure, said in DECISIVE.items():
            interval = self.differences[figure].interval
            if interval is not None and self.differences[figure].beyond_chance:
                second = interval.low > 0 if figure != MISSED else interval.high < 0
                yield second, f"'{self._name(second)}' {said}, by more than chance."
        if self.p_value < SIGNIFICANCE:
            second = len(self.second_right) > len(self.first_right)
            held = " Those for review count as not right." if any(self.reviews) else ""
            yield second, f"'{self._name(second)}' labels more photographs right, by more than chance.{held}"

    def _name(self, second: bool) -> Path:
        return self.second if second else self.first


def compare_runs(first: Path, second: Path) -> Comparison:
    """Compares two evaluated runs, given by their folders, as `compare_evaluations` does.

    Raises:
        RunError: If one was not evaluated, or as there.
    """
    return compare_evaluations(load_evaluation(first), load_evaluation(second))


def compare_evaluations(one: EvaluatedRun, other: EvaluatedRun) -> Comparison:
    """Compares two evaluated runs on the photographs that both have.

    Raises:
        RunError: If they have no photograph in common, or other labels or masks.
    """
    first, second = one.path, other.path
    if one.classes != other.classes:
        raise RunError(
            f"'{first}' knows the classes {', '.join(one.classes)}, '{second}' {', '.join(other.classes)}. "
            "Expected the same: compare runs of one task."
        )
    pairs = _pair(one, other)
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    first_right, second_right = _names_right(pairs), _names_right([(b, a) for a, b in pairs])
    return Comparison(
        first=first,
        second=second,
        photographs=len(pairs),
        left_out=len(one.results) + len(other.results) - 2 * len(pairs),
        differences=_subtract(before, after, one.classes),
        first_right=first_right,
        second_right=second_right,
        both_wrong=sum(a.outcome != "correct" != b.outcome for a, b in pairs),
        reviews=(_count_reviews(before), _count_reviews(after)),
        p_value=_test_mcnemar(len(first_right), len(second_right)),
    )


def _pair(one: EvaluatedRun, other: EvaluatedRun) -> list[tuple[PhotographResult, PhotographResult]]:
    mine, theirs = one.results_by_name(), other.results_by_name()
    pairs = [(mine[name], theirs[name]) for name in sorted(mine.keys() & theirs.keys())]
    if not pairs:
        raise RunError(
            f"'{one.path}' and '{other.path}' were evaluated on different photographs. Expected some in "
            "common: evaluate both on the same split of the same data. Folds are put together by: "
            "python -m training join"
        )
    for result, twin in pairs:
        if _truth(result) != _truth(twin):
            raise RunError(
                f"'{result.name}' has another label or mask in '{one.path}' than in '{other.path}'. "
                "Expected the same data set: evaluate both again."
            )
    return pairs


def _truth(result: PhotographResult) -> tuple[int, int | None]:
    return result.truth, None if result.pixels is None else result.pixels.tp + result.pixels.fn


def _names_right(pairs: Sequence[tuple[PhotographResult, PhotographResult]]) -> tuple[str, ...]:
    """Photographs that the first of each pair labels right and the second wrong."""
    return tuple(result.name for result, twin in pairs if result.outcome == "correct" != twin.outcome)


def _count_reviews(results: Sequence[PhotographResult]) -> int:
    return sum(result.outcome == "review" for result in results)


def _test_mcnemar(first: int, second: int) -> float:
    """How probable so uneven a division is if each of the photographs falls to either side alike."""
    from scipy.stats import binomtest  # takes a second to import

    return float(binomtest(first, first + second).pvalue) if first + second else 1.0


def _subtract(
    before: Sequence[PhotographResult], after: Sequence[PhotographResult], classes: tuple[str, ...]
) -> dict[str, Difference]:
    drawn: dict[str, list[NDArray[np.float64]]] = {name: [] for name in INTERVAL_METRICS}
    for weights in draw_resamples([result.group for result in before], resamples=RESAMPLES, seed=0):
        old, new = resample_metrics(before, weights), resample_metrics(after, weights)
        for name in INTERVAL_METRICS:
            drawn[name].append(new[name] - old[name])
    first, second = (compute_metrics(results, classes).scalars() for results in (before, after))
    return {
        name: Difference(first[name], second[name], percentile_interval(drawn[name]))
        for name in INTERVAL_METRICS
    }
