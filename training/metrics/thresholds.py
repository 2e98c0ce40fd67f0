"""Choice of calibration and thresholds of a model, on images that were not used for training."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from scipy.stats import beta, t

from segdec.config import Calibration
from segdec.runtime.counts import count_of
from training.config import ThresholdConfig
from training.metrics.calibration import apply_calibration, fit_calibration
from training.metrics.pixel_histogram import EDGES, PixelHistogram

DEFAULT = 0.5
"""Threshold if validation has too few images."""

NEARLY_BEST = 0.98
"""Share of the best pixel F1 that the mask threshold must reach."""

CLEARANCE = 0.2
"""Distance in log-odds of a threshold from every image, if the gap allows it: engines differ slightly."""

ENOUGH_DEFECTIVE = 15
"""Fewer defective photographs do not show how low the score of a defect can be."""

UNKNOWN_MISSES = (
    "The miss rate is unknown, and the score is not a probability: test the model on defective parts before "
    "use."
)
"""Note on a threshold that was chosen without defective photographs."""

Floats = NDArray[np.float64]


@dataclass
class ScoredPhotographs:
    """Log-odds [N] of images that were not used to train the network; `groups` are the parts they show."""

    labels: NDArray[np.int64]
    log_odds: Floats
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        if not np.isfinite(self.log_odds).all():
            raise ValueError("Log-odds are not finite. The network may have diverged.")

        self.good = self.log_odds[self.labels == 0]
        self.defective = self.log_odds[self.labels != 0]

    def worst_of_groups(self, *, good: bool) -> Floats:
        """Returns the worst log-odds of each part, ascending: highest of good, lowest of defective."""
        worst: dict[str, float] = {}
        for label, odds, group in zip(self.labels, self.log_odds.tolist(), self.groups, strict=True):
            if (label == 0) == good:
                choose = max if good else min
                worst[group] = choose(worst.get(group, odds), odds)
        return np.sort(np.array(list(worst.values()), np.float64))


def concatenate_scored(parts: Sequence[ScoredPhotographs]) -> ScoredPhotographs:
    """Concatenates scored images."""
    return ScoredPhotographs(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.log_odds for part in parts]),
        tuple(group for part in parts for group in part.groups),
    )


@dataclass(frozen=True)
class ScoreThresholds:
    """Calibration and thresholds of the image score, with warnings for the user."""

    calibration: Calibration
    threshold: float
    review: float | None = None
    notes: tuple[str, ...] = ()


def choose_score_thresholds(
    scored: ScoredPhotographs, settings: ThresholdConfig, *, balanced: bool = True
) -> ScoreThresholds:
    """Chooses calibration and thresholds of the image score.

    With good and defective images the score becomes a probability, and the threshold 1 / (1 + miss_cost)
    minimises the expected cost. With good images alone, a further good image exceeds the threshold with
    probability `refused_share`; with fewer than `ENOUGH_DEFECTIVE` defective ones, with at least this
    probability. Without enough images the threshold is 0.5. `settings.score` replaces the choice. `balanced`
    says whether the network was trained on as many defective as good images.
    """
    good, defective = scored.good, scored.defective
    calibration = Calibration()
    if len(good) and len(defective):
        calibration = fit_calibration(scored.labels, scored.log_odds, settings.defect_rate, balanced=balanced)
    if settings.score is not None:
        return _set_threshold(scored, calibration, settings.score, settings)
    if not len(good) or (not len(defective) and len(good) < 2):
        note = (
            f"The validation split has {len(good)} good and "
            f"{count_of(len(defective), 'defective image')}, too few to choose a score threshold: {DEFAULT} "
            "is used. Put both kinds into the validation split."
        )
        return ScoreThresholds(calibration, DEFAULT, notes=(note,))
    if not len(defective):
        return _limit_good(scored, settings)
    cut = log_odds_at(calibration, lowest_cost_score(settings))
    review = None
    if settings.review:
        review, cut, notes = _choose_review(scored, cut, settings)
    else:
        cut, notes = _lower_for_few_defects(scored, cut, settings)
    return place_thresholds(scored, calibration, cut, review, (*_list_doubts(scored, cut), *notes))


def _set_threshold(
    scored: ScoredPhotographs, calibration: Calibration, score: float, settings: ThresholdConfig
) -> ScoreThresholds:
    """Returns this threshold, with a review threshold if `settings` ask for one and it is lower."""
    if not len(scored.defective):
        return ScoreThresholds(calibration, score, notes=(UNKNOWN_MISSES,))
    if not settings.review:
        return ScoreThresholds(calibration, score)
    lower, notes = _limit_missed(scored, settings)
    review = place_score(scored, calibration, lower)
    return ScoreThresholds(calibration, score, review if review < score else None, notes)


def lowest_cost_score(settings: ThresholdConfig) -> float:
    """Returns the probability of a defect from which rejecting costs less than passing."""
    return 1 / (1 + settings.miss_cost)


def log_odds_at(calibration: Calibration, score: float) -> float:
    """Returns the network's log-odds of a score; the inverse of `apply_calibration`."""
    return (float(logit(score)) - calibration.intercept) / calibration.slope


# === With no or few defective photographs ===


def prediction_limit(values: Floats, share: float) -> float:
    """Returns what a further value exceeds with the probability `share`, from at least two values [N].

    It is the quantile of the values; with too few of them, that of a normal distribution.
    """
    count = len(values)
    if share * (count + 1) >= 1:
        # A further value exceeds the k-th of n with the probability 1 − k / (n + 1).
        return float(np.nextafter(np.quantile(values, 1 - share, method="weibull"), np.inf))
    reach = t.ppf(1 - share, count - 1) * np.sqrt(1 + 1 / count)
    return float(values.mean() + reach * values.std(ddof=1))


def _lower_for_few_defects(
    scored: ScoredPhotographs, cut: float, settings: ThresholdConfig
) -> tuple[float, tuple[str, ...]]:
    """Lowers a threshold to the limit of the good images if there are few defective ones."""
    good, count = scored.good, len(scored.defective)
    if (
        count >= ENOUGH_DEFECTIVE
        or len(good) < 2
        or (limit := prediction_limit(good, settings.refused_share)) >= cut
    ):
        return cut, ()
    note = (
        f"{count_of(count, 'defective photograph')} cannot show how low the score of a defect can be: "
        f"instead of the threshold with the lowest cost, one is used that rejects about "
        f"{_percent(settings.refused_share)} of the good photographs."
    )
    return limit, (note,)


def _limit_good(scored: ScoredPhotographs, settings: ThresholdConfig) -> ScoreThresholds:
    cut = prediction_limit(scored.good, settings.refused_share)
    parts = scored.worst_of_groups(good=True)
    refused = int(np.count_nonzero(parts >= cut))
    passed = len(parts) - refused
    highest = float(beta.ppf(settings.confidence, refused + 1, passed)) if passed else 1.0
    note = (
        f"The threshold is based on {count_of(len(parts), 'good part')} and no defective one: it rejects "
        f"at most {_percent(highest)} of the good ones ({_percent(settings.confidence)} confidence). "
        f"{UNKNOWN_MISSES}"
    )
    return place_thresholds(scored, Calibration(), cut, None, (note,))


# === Review ===


def _choose_review(
    scored: ScoredPhotographs, cut: float, settings: ThresholdConfig
) -> tuple[float | None, float, tuple[str, ...]]:
    """Log-odds of the review threshold and of the threshold, and warnings.

    Both are order statistics of the parts: the probability that a further part lies beyond the k-th of n has
    the distribution Beta(k, n − k + 1), which is also the Clopper-Pearson bound (Wilks 1941).
    """
    lower, notes = _limit_missed(scored, settings)
    refused = -scored.worst_of_groups(good=True)[::-1]
    upper, risk = _bound(refused, settings.refused_share, settings.confidence)
    notes += _explain_risk("good parts are rejected", risk, settings.refused_share, len(refused), settings)
    if lower > -upper:  # one threshold between the two meets both risks
        return None, float(np.clip(cut, np.nextafter(-upper, np.inf), lower)), notes
    return lower, float(np.nextafter(-upper, np.inf)), notes


def _bound(ascending: Floats, share: float, confidence: float) -> tuple[float, float]:
    """The highest value below which a further one lies with at most this probability, else the lowest.

    Returns the value, and the upper bound of the probability with this confidence.
    """
    places = np.arange(1, len(ascending) + 1)
    risks = beta.ppf(confidence, places, len(ascending) - places + 1)
    kept = int(np.count_nonzero(risks <= share))
    place = max(kept - 1, 0)
    return float(ascending[place]), float(risks[place])


def _limit_missed(scored: ScoredPhotographs, settings: ThresholdConfig) -> tuple[float, tuple[str, ...]]:
    """Log-odds below which at most `missed_share` of the defective parts are, and warnings."""
    missed = scored.worst_of_groups(good=False)
    lower, risk = _bound(missed, settings.missed_share, settings.confidence)
    what = "defective parts pass as good"
    return lower, _explain_risk(what, risk, settings.missed_share, len(missed), settings)


def _explain_risk(
    what: str, risk: float, asked: float, parts: int, settings: ThresholdConfig
) -> tuple[str, ...]:
    if risk <= asked:
        return ()
    needed = int(np.ceil(np.log1p(-settings.confidence) / np.log1p(-asked)))
    return (
        f"{count_of(parts, 'part')} cannot guarantee that at most {_percent(asked)} of the {what}: that "
        f"needs {needed} parts. Guaranteed are {_percent(risk)}, with {_percent(settings.confidence)} "
        "confidence.",
    )


# === Placing ===


def place_thresholds(
    scored: ScoredPhotographs,
    calibration: Calibration,
    cut: float,
    review: float | None,
    notes: tuple[str, ...] = (),
) -> ScoreThresholds:
    """Returns the scores of the threshold and of the one for review, both in log-odds, as `place_score`.

    There is no review if no photograph is between the two.
    """
    threshold = place_score(scored, calibration, cut)
    lower = None if review is None else place_score(scored, calibration, review)
    if lower is not None and lower >= threshold:
        lower = None
    return ScoreThresholds(calibration, threshold, lower, notes)


def place_score(scored: ScoredPhotographs, calibration: Calibration, cut: float) -> float:
    """Returns the score of a threshold in log-odds, at a distance from every image if possible."""
    score = float(apply_calibration(calibration, _keep_clear(scored.log_odds, cut)))
    return min(max(score, math.nextafter(0.0, 1.0)), math.nextafter(1.0, 0.0))


def _keep_clear(log_odds: Floats, cut: float) -> float:
    """Moves a threshold within its gap between two images away from both."""
    ordered = np.sort(log_odds)
    place = int(np.searchsorted(ordered, cut))  # ordered[place] and higher are defective
    low = ordered[place - 1] if place else -np.inf
    high = ordered[place] if place < len(ordered) else np.inf
    if high - low <= 2 * CLEARANCE:
        return float((low + high) / 2)
    return float(np.clip(cut, low + CLEARANCE, high - CLEARANCE))


def _list_doubts(scored: ScoredPhotographs, cut: float) -> tuple[str, ...]:
    detected = scored.log_odds >= cut
    if detected.any() and not detected.all():
        return ()
    label = "defective" if detected.all() else "good"
    return (
        f"The threshold calls every image {label}: the validation scores separate good and defective images "
        "too little for this cost of a miss. Train longer, or check the labels, threshold.miss_cost and "
        "threshold.defect_rate.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


# === Mask ===


def choose_mask_threshold(histogram: PixelHistogram, default: float = DEFAULT) -> tuple[float, str | None]:
    """Chooses the mask threshold by the pooled pixel F1 on validation; returns it and a warning, if any.

    It is the lowest multiple of 1/256 that reaches `NEARLY_BEST` of the best F1: lower thresholds show more
    of each defect. Returns `default` if validation has no defect pixel, or the network finds none.
    """
    f1 = histogram.f1_at_edges()
    if f1 is None:
        return default, (
            "No defective photograph that thresholds are chosen on has a mask, so the mask threshold "
            f"{default:.3g} is used and regions are approximate. Draw masks of some defects to show exactly "
            "where they are."
        )
    if not f1.max():
        note = f"No mask threshold finds a validation defect, so the mask threshold {default:.3g} is used."
        return default, note
    return (1 + int(np.flatnonzero(f1 >= NEARLY_BEST * f1.max())[0])) / EDGES, None
