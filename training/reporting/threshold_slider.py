"""What the threshold slider of the report needs: scores, marks, and the counts at a threshold.

The page counts anew in the browser (`templates/threshold.js`) whenever the slider moves; `count_at` gives
the same numbers for the page as it is first shown, and for browsers without scripts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segdec.config import REVIEW
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_counts import ratio
from training.reporting.charts import odds_range, to_odds


@dataclass(frozen=True)
class Counts:
    """Photographs at one threshold: defective ones found and missed, good ones alarmed and passed.

    Those for review are in none of these, good and defective ones apart.
    """

    found: int
    missed: int
    alarms: int
    passed: int
    good_reviews: int = 0
    defective_reviews: int = 0

    @property
    def reviews(self) -> int:
        """Photographs for review, good and defective."""
        return self.good_reviews + self.defective_reviews

    @property
    def precision(self) -> float | None:
        """Share of the alarms that are defective; None without an alarm."""
        return ratio(self.found, self.found + self.alarms)

    @property
    def recall(self) -> float | None:
        """Share of the defective photographs found; None without one."""
        return ratio(self.found, self.found + self.missed + self.defective_reviews)


@dataclass(frozen=True)
class Mark:
    """A threshold worth naming on the slider.

    Attributes:
        name: What it is, in a word or two.
        threshold: The image score.
        place: Where on the slider, from 0 at its left end to 1.
        kind: `chosen` before, `hindsight`: found on the photographs that are measured, or `review`: where
            review begins, which the slider does not move.
    """

    name: str
    threshold: float
    place: float
    kind: str


@dataclass(frozen=True)
class Slider:
    """The slider of one evaluation, in log-odds of the score, because scores crowd near 0 and 1.

    Attributes:
        low: Its left end, log10 of the odds.
        high: Its right end.
        marks: Thresholds worth naming.
        data: What the script reads.
    """

    low: float
    high: float
    marks: tuple[Mark, ...]
    data: dict[str, Any]


def make_slider(
    results: Sequence[PhotographResult],
    classes: Sequence[str],
    threshold: float | None,
    review: float | None = None,
) -> Slider | None:
    """Makes the slider over `results`; None without results, or if they have no threshold in common.

    It moves the threshold. The score from which photographs are for review, if there is one, stays: a
    threshold below it leaves none for review.
    """
    if not results or threshold is None:
        return None
    low, high = odds_range(np.array([result.score for result in results]), threshold, review)
    full_recall = full_recall_threshold(results)
    named = [("model's own", threshold, "chosen")]
    named += [] if review is None else [("review from", review, "review")]
    named += [] if full_recall is None else [("no miss", full_recall, "hindsight")]
    marks = tuple(
        Mark(name, value, float((to_odds(value) - low) / (high - low)), kind) for name, value, kind in named
    )
    data = {
        "classes": list(classes),
        "threshold": threshold,
        "review": review,
        "rows": [embed_row(result, classes) for result in results],
    }
    return Slider(low, high, marks, data)


def embed_row(result: PhotographResult, classes: Sequence[str]) -> list[str | int | float]:
    """Lists name, true class, predicted class (index), score and regions, as the script reads them.

    The predicted class of a photograph for review is not known; it stands as good there.
    """
    predicted = 0 if result.predicted_label == REVIEW else classes.index(result.predicted_label)
    return [result.name, result.truth, predicted, result.score, result.regions]


def full_recall_threshold(results: Sequence[PhotographResult]) -> float | None:
    """Returns the highest threshold that misses no defective photograph; None without one."""
    return min((result.score for result in results if result.truth), default=None)


def count_at(results: Sequence[PhotographResult], threshold: float | None) -> Counts:
    """Counts the decisions at `threshold`; at each result's own for None.

    From its review threshold on, if it has one, a result below the threshold is for review.
    """
    pairs = [(result.truth != 0, _decide(result, threshold)) for result in results]
    return Counts(
        found=pairs.count((True, "defective")),
        missed=pairs.count((True, "good")),
        alarms=pairs.count((False, "defective")),
        passed=pairs.count((False, "good")),
        good_reviews=pairs.count((False, "review")),
        defective_reviews=pairs.count((True, "review")),
    )


def _decide(result: PhotographResult, threshold: float | None) -> str:
    if result.score >= (result.threshold if threshold is None else threshold):
        return "defective"
    held = result.review_threshold is not None and result.score >= result.review_threshold
    return "review" if held else "good"
