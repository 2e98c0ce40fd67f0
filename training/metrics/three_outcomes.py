"""Three outcomes, defective, review and good, where a single threshold would reject many good parts."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from segdec.runtime.counts import count_of
from training.config import ThresholdConfig
from training.metrics.calibration import apply_calibration, fit_calibration
from training.metrics.thresholds import (
    ENOUGH_DEFECTIVE,
    ScoredPhotographs,
    ScoreThresholds,
    choose_score_thresholds,
    log_odds_at,
    place_thresholds,
    prediction_limit,
)

MAX_SHARE = 0.01
"""Share of good parts that are rejected, and of defective ones that are missed, with three outcomes."""

MAX_REVIEWED = 0.9
"""Share of good parts for review above which the model would decide nothing: fewer are for review then."""

TAIL_SHARE, MIN_TAIL = 0.2, 3
"""Share of the good parts, and their least number, to which the tail of the good scores is fitted."""

EXPECTED_SPREAD, SPREAD_WEIGHT = 1.25, 8
"""Expected standard deviation of the log-odds of defective parts, in that of good ones, and the number of
parts that this counts for. Chosen with `benchmarks.thresholds`, as the tail."""

MISS_COST = ThresholdConfig().miss_cost

Floats = NDArray[np.float64]


def choose_outcomes(
    scored: ScoredPhotographs, settings: ThresholdConfig, *, balanced: bool = True
) -> ScoreThresholds:
    """Chooses calibration and thresholds as `choose_score_thresholds`, or three outcomes.

    Three outcomes if a single threshold would reject more than `settings.max_rejected` of the good parts,
    unless `settings` name a threshold, a review or another cost of a miss. A further good part is then
    rejected, and a further defective one missed, with the probability `MAX_SHARE`. If a single threshold can
    meet both shares, nothing is for review. If that leaves more than `MAX_REVIEWED` of the good parts for
    review, the review begins at the single threshold.
    """
    limits = choose_score_thresholds(scored, settings, balanced=balanced)
    good, defective = (scored.worst_of_groups(good=kind) for kind in (True, False))
    decided = settings.score is not None or settings.review or settings.miss_cost != MISS_COST
    if decided or len(good) < 2 or not len(defective):
        return limits
    rejected = float(np.mean(apply_calibration(limits.calibration, good) >= limits.threshold))
    if rejected <= settings.max_rejected:
        return limits
    upper = limit_rejected(good)
    lower = limit_missed(good, defective, balanced=balanced)
    if lower >= upper:
        return place_thresholds(scored, limits.calibration, (lower + upper) / 2, None)
    single = log_odds_at(limits.calibration, limits.threshold)
    reviewed, count = float(np.mean((good >= lower) & (good < upper))), len(defective)
    notes = [
        f"A single threshold would reject {100 * rejected:.0f} of 100 good parts: uncertain parts are for "
        "review instead."
    ]
    if reviewed > MAX_REVIEWED:
        lower = single
        notes.append(
            "The scores of good and defective parts overlap: to miss at most 1 % of the defective ones, "
            f"{100 * reviewed:.0f} of 100 good ones would be for review. The review therefore begins at the "
            "single threshold, and more are missed."
        )
    elif count < ENOUGH_DEFECTIVE:
        notes.append(
            f"{count_of(count, 'defective part')} cannot show how low the score of a defect can be, so many "
            "parts are for review."
        )
    return place_thresholds(scored, limits.calibration, upper, lower, tuple(notes))


def limit_rejected(good: Floats) -> float:
    """Returns the log-odds that a further good part exceeds with the probability `MAX_SHARE`.

    It is the quantile of the good parts [N]; with too few of them, that of an exponential tail above the
    highest of them. Its mean is uncertain, so that a further part follows a Lomax distribution.
    """
    count = len(good)
    if MAX_SHARE * (count + 1) >= 1:
        return prediction_limit(good, MAX_SHARE)
    number = min(max(MIN_TAIL, round(TAIL_SHARE * count)), count - 1)
    *_, edge = highest = np.sort(good)[::-1][: number + 1]
    total = float(np.sum(highest - edge))
    reach = (MAX_SHARE * (count + 1) / number) ** (-1 / number) - 1
    return float(np.nextafter(edge + total * reach, np.inf))


def limit_missed(good: Floats, defective: Floats, *, balanced: bool = True) -> float:
    """Returns the log-odds below which a further defective part is with at most the probability `MAX_SHARE`.

    It is the quantile of the defective parts [M]. With too few of them it is the lower one of two estimates,
    which fail in different cases: by a normal distribution, and by the probability of a defect of all parts.
    """
    if MAX_SHARE * (len(defective) + 1) >= 1:
        return -prediction_limit(-defective, MAX_SHARE)
    return min(_limit_by_spread(good, defective), _limit_by_probability(good, defective, balanced=balanced))


def _limit_by_spread(good: Floats, defective: Floats) -> float:
    """The quantile of a normal distribution; its standard deviation also depends on that of good parts."""
    count = len(defective)
    prior = SPREAD_WEIGHT * (EXPECTED_SPREAD * good.std(ddof=1)) ** 2
    freedom = SPREAD_WEIGHT + count - 1
    spread = np.sqrt((prior + count * defective.var()) / freedom)
    return float(defective.mean() - t.ppf(1 - MAX_SHARE, freedom) * np.sqrt(1 + 1 / count) * spread)


def _limit_by_probability(good: Floats, defective: Floats, *, balanced: bool) -> float:
    """The log-odds below which `MAX_SHARE` of the sum of the probabilities of a defect of all parts is."""
    odds = np.concatenate([good, defective])
    labels = np.repeat([0, 1], [len(good), len(defective)])
    probability = apply_calibration(fit_calibration(labels, odds, balanced=balanced), odds)
    order = np.argsort(odds)
    below = np.cumsum(probability[order]) / probability.sum()
    return float(odds[order][np.searchsorted(below, MAX_SHARE, side="right")])
