"""Data of the threshold slider of the report: scores, marks, and counts at a threshold.

`templates/threshold.js` counts again whenever the slider moves; `count_at` computes the same counts for the
initial page, and for browsers without scripts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segdec.runtime.identifiers import REVIEW
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_counts import ratio
from training.reporting.charts import odds_range, to_log10_odds


@dataclass(frozen=True)
class Counts:
    """Decisions at one threshold: defective images found and missed, good ones rejected or passed."""

    found: int
    missed: int
    alarms: int
    passed: int
    good_reviews: int = 0
    defective_reviews: int = 0

    @property
    def reviews(self) -> int:
        """Images for review."""
        return self.good_reviews + self.defective_reviews

    @property
    def precision(self) -> float | None:
        """Share of the images called defective that are defective; None if none is called defective."""
        return ratio(self.found, self.found + self.alarms)

    @property
    def recall(self) -> float | None:
        """Share of the defective images that is found; None without one."""
        return ratio(self.found, self.found + self.missed + self.defective_reviews)


@dataclass(frozen=True)
class Mark:
    """A labelled threshold; `place` is its position on the slider, 0 to 1.

    `kind` is `chosen`: the model's threshold; `hindsight`: found on the evaluated images; `review`: the
    review threshold, which the slider does not move.
    """

    name: str
    threshold: float
    place: float
    kind: str


@dataclass(frozen=True)
class Slider:
    """The slider of one evaluation, with its ends in log10 of the odds; `data` is the input of the script."""

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
    """Makes the slider for `results`; None without results or without a common threshold.

    The review threshold stays fixed: a threshold below it leaves no image for review.
    """
    if not results or threshold is None:
        return None
    low, high = odds_range(np.array([result.score for result in results]), threshold, review)
    full_recall = full_recall_threshold(results)
    named = [("model's own", threshold, "chosen")]
    named += [] if review is None else [("review from", review, "review")]
    named += [] if full_recall is None else [("no miss", full_recall, "hindsight")]
    marks = tuple(
        Mark(name, value, float((to_log10_odds(value) - low) / (high - low)), kind)
        for name, value, kind in named
    )
    data = {
        "classes": list(classes),
        "threshold": threshold,
        "review": review,
        "rows": [embed_row(result, classes) for result in results],
    }
    return Slider(low, high, marks, data)


def embed_row(result: PhotographResult, classes: Sequence[str]) -> list[str | int | float]:
    """Returns name, true class, predicted class (index), score and regions, for the script.

    The predicted class of an image for review is unknown and given as good.
    """
    predicted = 0 if result.predicted_label == REVIEW else classes.index(result.predicted_label)
    return [result.name, result.truth, predicted, result.score, result.regions]


def full_recall_threshold(results: Sequence[PhotographResult]) -> float | None:
    """Returns the highest threshold without a missed defect; None without a defective image."""
    return min((result.score for result in results if result.truth), default=None)


def count_at(results: Sequence[PhotographResult], threshold: float | None) -> Counts:
    """Counts the decisions at `threshold`; None for the threshold of each result."""
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
