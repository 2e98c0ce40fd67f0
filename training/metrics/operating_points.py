"""Operating points: what the threshold rejects and misses, and other thresholds to choose from."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from segdec.artifact import MAX_CURVE_POINTS, OperatingPoint, OutcomeCurve, PartShare
from segdec.artifact.operating_points import Goal
from segdec.config import Calibration
from segdec.runtime.counts import count_of
from training.config import ThresholdConfig
from training.metrics.calibration import apply_calibration
from training.metrics.expected_outcomes import expect_outcomes
from training.metrics.intervals import LEVEL, count_parts
from training.metrics.three_outcomes import MAX_SHARE
from training.metrics.thresholds import (
    CLEARANCE,
    ScoredPhotographs,
    ScoreThresholds,
    choose_score_thresholds,
    log_odds_at,
    lowest_cost_score,
    place_score,
)

MIN_PARTS = int(np.ceil(np.log((1 - LEVEL) / 2) / np.log1p(-MAX_SHARE)))
"""Parts from which the interval of none of them is within `MAX_SHARE`."""

Floats = NDArray[np.float64]


def find_operating_points(
    scored: ScoredPhotographs, limits: ScoreThresholds, settings: ThresholdConfig
) -> tuple[OperatingPoint, ...]:
    """Returns the threshold in use, then others to choose from; none without photographs.

    "At most 1 % rejected" holds for these parts and misses as few as possible, and vice versa; the interval
    is what to expect of others (Wilks 1941). With good photographs alone it is the threshold that
    `choose_score_thresholds` chooses for 1 %.
    """
    if not len(scored.labels):
        return ()
    points = _Points(scored, limits.calibration)
    chosen = points.measure("chosen", limits.threshold, limits.review)
    if not len(scored.good) or len(scored.labels) < 2:
        return (chosen,)
    if not len(scored.defective):
        strict = settings.model_copy(update={"refused_share": MAX_SHARE, "score": None})
        threshold = choose_score_thresholds(scored, strict).threshold
        return chosen, points.offer("at most 1 % rejected", threshold)
    cut = log_odds_at(limits.calibration, lowest_cost_score(settings))
    return chosen, *points.offer_all(cut)


def find_outcome_curve(
    scored: ScoredPhotographs, calibration: Calibration, thresholds: Iterable[float]
) -> OutcomeCurve | None:
    """Returns the errors at thresholds between the parts, and at `thresholds`, which are always contained.

    With too many parts, the thresholds are closer together where few parts are rejected or missed. None
    without good or without defective parts.
    """
    good, defective = (
        np.sort(apply_calibration(calibration, scored.worst_of_groups(good=kind))) for kind in (True, False)
    )
    if not len(good) or not len(defective):
        return None
    edges = np.unique(np.concatenate([good, defective]))
    own = np.unique([*thresholds])
    between = _thin((edges[:-1] + edges[1:]) / 2, good, defective, MAX_CURVE_POINTS - len(own))
    places = np.unique([*own, *(_shorten(place, edges) for place in between.tolist())])
    return OutcomeCurve(
        scores=tuple(places.tolist()),
        rejected=tuple((len(good) - np.searchsorted(good, places)).tolist()),
        missed=tuple(np.searchsorted(defective, places).tolist()),
        good=len(good),
        defective=len(defective),
    )


def _thin(places: Floats, good: Floats, defective: Floats, number: int) -> Floats:
    """At most this number of ascending places, at equal distances of the shares of the parts below them.

    The arcsine of the root of a share has a constant variance, so small shares are resolved, too.
    """
    if len(places) <= number:
        return places
    shares = [np.searchsorted(each, places) / len(each) for each in (good, defective)]
    travel = np.arcsin(np.sqrt(shares)).sum(axis=0)
    wanted = np.linspace(travel[0], travel[-1], number)
    return places[np.minimum(np.searchsorted(travel, wanted), len(places) - 1)]


class _Points:
    """The worst photographs of the parts, and the errors at any threshold."""

    def __init__(self, scored: ScoredPhotographs, calibration: Calibration) -> None:
        self._scored, self._calibration = scored, calibration
        self._scores = apply_calibration(calibration, scored.log_odds)
        self._good, self._defective = (scored.worst_of_groups(good=good) for good in (True, False))
        rate = calibration.defect_rate
        self._defect_rate = float(np.mean(scored.labels != 0)) if rate is None else rate

    def measure(self, goal: Goal, threshold: float, review: float | None = None) -> OperatingPoint:
        """Returns the point of a threshold; parts from `review` on are not missed."""
        good, defective = (
            apply_calibration(self._calibration, each) for each in (self._good, self._defective)
        )
        rejected = count_parts(good >= threshold)
        missed = count_parts(defective < (threshold if review is None else review))
        few = {"at most 1 % rejected": (rejected, "good"), "at most 1 % missed": (missed, "defective")}
        note = _note(*few[goal]) if goal in few else None
        return OperatingPoint(
            goal=goal,
            threshold=threshold,
            rejected=rejected,
            missed=missed,
            note=note,
            expected=expect_outcomes(good, defective, threshold, review, self._defect_rate),
        )

    def offer(self, goal: Goal, threshold: float) -> OperatingPoint:
        """Returns the point of a threshold with as few digits as decide the same."""
        return self.measure(goal, _shorten(threshold, self._scores))

    def offer_all(self, cut: float) -> Iterator[OperatingPoint]:
        """Yields the points of good and defective parts; `cut` is that of the lowest cost, in log-odds."""
        yield self._offer_at("lowest cost", cut)
        edges = np.append(np.unique(self._scored.log_odds), np.inf)  # one may be the lowest that is defective
        rejected = len(self._good) - np.searchsorted(self._good, edges)
        missed = np.searchsorted(self._defective, edges)
        goals: dict[Goal, tuple[NDArray[np.intp], NDArray[np.intp]]] = {
            "at most 1 % rejected": (rejected, missed),
            "at most 1 % missed": (missed, rejected),
        }
        for goal, (own, other) in goals.items():
            allowed = own <= int(MAX_SHARE * own.max())
            fewest = allowed & (other == other[allowed].min())
            best = np.flatnonzero(fewest & (own == own[fewest].min()))
            below = edges[best[0] - 1] if best[0] else -np.inf
            yield self._offer_at(goal, float(np.clip(cut, np.nextafter(below, np.inf), edges[best[-1]])))

    def _offer_at(self, goal: Goal, cut: float) -> OperatingPoint:
        return self.offer(goal, place_score(self._scored, self._calibration, cut))


def _note(share: PartShare | None, kind: str) -> str | None:
    if share is None or share.parts >= MIN_PARTS:
        return None
    are = "is" if share.parts == 1 else "are"
    return (
        f"{count_of(share.parts, f'{kind} part')} {are} too few to show {100 * MAX_SHARE:g} %: at least "
        f"{MIN_PARTS} are needed."
    )


def _shorten(threshold: float, scores: Floats) -> float:
    """The threshold with the fewest digits that decides the same and hardly moves."""
    for digits in range(2, 17):
        short = float(f"{threshold:.{digits}g}")
        same = 0 < short < 1 and np.array_equal(scores >= short, scores >= threshold)
        if same and abs(logit(short) - logit(threshold)) <= CLEARANCE / 4:
            return short
    return threshold
