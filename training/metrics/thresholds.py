"""Choosing the limits of a model on photographs that it did not learn from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from scipy.stats import beta, t

from segdec.config import Calibration, Thresholds
from training.config import ThresholdConfig
from training.formatting import count_of
from training.metrics.calibration import apply_calibration, fit_calibration
from training.metrics.pixel_histogram import EDGES, PixelHistogram

DEFAULT = 0.5
"""The limit if validation cannot tell."""

NEARLY_BEST = 0.98
"""Share of the best pixel F1 that the mask threshold keeps at least."""

CLEARANCE = 0.2
"""Log-odds that a limit keeps from every photograph, where their gap allows it: engines differ a little."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ScoredPhotographs:
    """Photographs that the network did not learn from, as it judged them.

    Attributes:
        labels: Class indices [N]; other than 0 is defective.
        log_odds: The network's own [N].
        groups: The part that each shows [N]; photographs of one part are no independent evidence.
    """

    labels: NDArray[np.int64]
    log_odds: Floats
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        if not len(self.labels) == len(self.log_odds) == len(self.groups):
            raise ValueError(
                f"{len(self.labels)} labels, {len(self.log_odds)} log-odds and {len(self.groups)} groups. "
                "Expected as many of each."
            )
        if not np.isfinite(self.log_odds).all():
            raise ValueError("Log-odds that are not finite. Expected numbers; the network may have diverged.")

    @property
    def good(self) -> Floats:
        """Log-odds of the good ones."""
        return np.asarray(self.log_odds[self.labels == 0])

    @property
    def defective(self) -> Floats:
        """Log-odds of the defective ones."""
        return np.asarray(self.log_odds[self.labels != 0])

    def worst_of_groups(self, *, good: bool) -> Floats:
        """Returns the log-odds of each part's worst photograph, ascending: highest good, lowest defective."""
        worst: dict[str, float] = {}
        for label, odds, group in zip(self.labels, self.log_odds.tolist(), self.groups, strict=True):
            if (label == 0) == good:
                choose = max if good else min
                worst[group] = choose(worst.get(group, odds), odds)
        return np.sort(np.array(list(worst.values()), np.float64))


def concatenate_scored(parts: Sequence[ScoredPhotographs]) -> ScoredPhotographs:
    """Returns all photographs together."""
    return ScoredPhotographs(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.log_odds for part in parts]),
        tuple(group for part in parts for group in part.groups),
    )


@dataclass(frozen=True)
class ScoreThresholds:
    """What judges image scores.

    Attributes:
        calibration: Makes a probability of the network's score, where there is enough to fit it to.
        threshold: Score from which a photograph is defective.
        review: Score from which it is for review; None where nothing is.
        notes: What the user must know of them.
    """

    calibration: Calibration
    threshold: float
    review: float | None = None
    notes: tuple[str, ...] = ()

    def thresholds(self, mask: float) -> Thresholds:
        """Returns the model's thresholds, with that of the mask."""
        return Thresholds(score=self.threshold, mask=mask, review=self.review)


def choose_score_thresholds(
    scored: ScoredPhotographs, settings: ThresholdConfig, *, balanced: bool = True
) -> ScoreThresholds:
    """Chooses calibration and limits of the image score.

    With photographs of both kinds the score becomes a probability, and a photograph is defective where
    passing it would cost more than refusing it: from 1 / (1 + miss_cost) on. With good ones alone the limit
    is the score that a further good one exceeds with the probability `refused_share`, by their mean and
    spread in log-odds. With neither it is 0.5.

    Args:
        scored: The photographs.
        settings: What the limits are chosen by.
        balanced: Whether the network was trained on as many defective as good images.
    """
    good, defective = scored.good, scored.defective
    if not len(good) or (not len(defective) and len(good) < 2):
        return ScoreThresholds(Calibration(), DEFAULT, notes=(_explain_default(len(good), len(defective)),))
    if not len(defective):
        return _limit_good(scored, settings)
    calibration = fit_calibration(scored.labels, scored.log_odds, settings.defect_rate, balanced=balanced)
    cut = _to_log_odds(calibration, 1 / (1 + settings.miss_cost))
    if not settings.review:
        return _place(scored, calibration, cut, None, _list_doubts(scored, cut))
    review, cut, notes = _choose_review(scored, cut, settings)
    return _place(scored, calibration, cut, review, (*_list_doubts(scored, cut), *notes))


# === With good photographs alone ===


def _limit_good(scored: ScoredPhotographs, settings: ThresholdConfig) -> ScoreThresholds:
    """The order statistic of the good parts that keeps `refused_share` with confidence, if there is one.

    Else what a further photograph exceeds with that probability, of a normal distribution.
    """
    parts = scored.worst_of_groups(good=True)
    bound, risk = _bound(-parts[::-1], settings.refused_share, settings.confidence)
    cut = float(np.nextafter(-bound, np.inf))
    if risk > settings.refused_share:
        count = len(scored.good)
        reach = t.ppf(1 - settings.refused_share, count - 1) * np.sqrt(1 + 1 / count)
        cut = float(scored.good.mean() + reach * scored.good.std(ddof=1))
    refused = int(np.count_nonzero(parts >= cut))
    passed = len(parts) - refused
    most = float(beta.ppf(settings.confidence, refused + 1, passed)) if passed else 1.0
    note = (
        f"The threshold stands on {len(parts)} good parts and no defective one: at most {_percent(most)} "
        f"of the good ones are refused ({_percent(settings.confidence)} confidence). How many defects are "
        "missed is not known, and the score is no probability: try it on defective parts before you trust it."
    )
    return _place(scored, Calibration(), cut, None, (note,))


# === Review ===


def _choose_review(
    scored: ScoredPhotographs, cut: float, settings: ThresholdConfig
) -> tuple[float | None, float, tuple[str, ...]]:
    """Log-odds from which a photograph is for review, and from which it is refused, and what to know.

    Both are order statistics of the parts: the probability of a further part beyond the k-th of n is
    beta-distributed (k, n − k + 1), which is also Clopper and Pearson's bound (Wilks 1941).
    """
    missed, refused = scored.worst_of_groups(good=False), -scored.worst_of_groups(good=True)[::-1]
    lower, lower_risk = _bound(missed, settings.missed_share, settings.confidence)
    upper, upper_risk = _bound(refused, settings.refused_share, settings.confidence)
    risks = (
        ("defective parts pass as good", lower_risk, settings.missed_share, len(missed)),
        ("good parts are refused", upper_risk, settings.refused_share, len(refused)),
    )
    notes = tuple(
        _explain_risk(what, risk, asked, parts, settings.confidence)
        for what, risk, asked, parts in risks
        if risk > asked
    )
    if lower > -upper:  # one limit between the two keeps both risks
        return None, float(np.clip(cut, np.nextafter(-upper, np.inf), lower)), notes
    return lower, float(np.nextafter(-upper, np.inf)), notes


def _bound(ascending: Floats, share: float, confidence: float) -> tuple[float, float]:
    """The highest of the values below which a further one lies with at most this probability, else the least.

    Returns it, and the probability that can be stated of it with this confidence.
    """
    places = np.arange(1, len(ascending) + 1)
    risks = beta.ppf(confidence, places, len(ascending) - places + 1)
    kept = int(np.count_nonzero(risks <= share))
    place = max(kept - 1, 0)
    return float(ascending[place]), float(risks[place])


def _explain_risk(what: str, risk: float, asked: float, parts: int, confidence: float) -> str:
    needed = int(np.ceil(np.log1p(-confidence) / np.log1p(-asked)))
    return (
        f"With {count_of(parts, 'such part')} it cannot be stated that at most {_percent(asked)} of the "
        f"{what}: that takes {needed}. What can be stated is {_percent(risk)}, with {_percent(confidence)} "
        "confidence."
    )


# === Placing ===


def _place(
    scored: ScoredPhotographs,
    calibration: Calibration,
    cut: float,
    review: float | None,
    notes: tuple[str, ...],
) -> ScoreThresholds:
    """Both limits as scores, clear of every photograph where there is room."""

    def to_score(limit: float) -> float:
        score = float(apply_calibration(calibration, _keep_clear(scored.log_odds, limit)))
        return min(max(score, math.nextafter(0.0, 1.0)), math.nextafter(1.0, 0.0))

    threshold, lower = to_score(cut), None if review is None else to_score(review)
    if lower is not None and lower >= threshold:
        lower = None
    return ScoreThresholds(calibration, threshold, lower, notes)


def _keep_clear(log_odds: Floats, cut: float) -> float:
    """Moves a limit within its gap between two photographs away from both, on the same side of each."""
    ordered = np.sort(log_odds)
    place = int(np.searchsorted(ordered, cut))  # `cut` calls ordered[place] and what is above it defective
    low = ordered[place - 1] if place else -np.inf
    high = ordered[place] if place < len(ordered) else np.inf
    if high - low <= 2 * CLEARANCE:
        return float((low + high) / 2)
    return float(np.clip(cut, low + CLEARANCE, high - CLEARANCE))


def _to_log_odds(calibration: Calibration, score: float) -> float:
    return (float(logit(score)) - calibration.intercept) / calibration.slope


def _list_doubts(scored: ScoredPhotographs, cut: float) -> tuple[str, ...]:
    detected = scored.log_odds >= cut
    if detected.any() and not detected.all():
        return ()
    label = "defective" if detected.all() else "good"
    return (
        f"The threshold calls every image {label}: the validation scores tell good from defective too little "
        "for what a miss costs. Train longer, or look at the labels, threshold.miss_cost and "
        "threshold.defect_rate.",
    )


def _explain_default(good: int, defective: int) -> str:
    return (
        f"The validation split has {good} good and {defective} defective images, too few to choose a score "
        f"threshold: {DEFAULT} is used. Put images of both kinds into the validation split."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


# === Mask ===


@dataclass(frozen=True)
class MaskThreshold:
    """The threshold of the mask score, and what the user must know of it, if anything."""

    value: float
    note: str | None = None


def choose_mask_threshold(histogram: PixelHistogram, default: float = DEFAULT) -> MaskThreshold:
    """Chooses the mask score from which a pixel belongs to a defect, by the pooled pixel F1 on validation.

    It is the lowest threshold whose F1 is hardly below the best one: about the best many are nearly as good,
    and the lower ones show more of each defect. It is a multiple of 1/256, above 0 and below 1.

    Returns:
        `default` with a note if validation has no defect pixel, or none is found.
    """
    if not histogram.has_defect():
        note = (
            f"No validation mask holds a defect, so the mask threshold {default:g} is used. "
            "Put defective images with masks into the validation split."
        )
        return MaskThreshold(default, note)
    f1 = _f1_at_edges(histogram)
    if not f1.max():
        note = f"No mask score finds a defect of validation, so the mask threshold {default:g} is used."
        return MaskThreshold(default, note)
    return MaskThreshold((1 + int(np.flatnonzero(f1 >= NEARLY_BEST * f1.max())[0])) / EDGES)


def best_pixel_f1(histogram: PixelHistogram) -> float | None:
    """Returns the pooled pixel F1 at the mask threshold that is best for it; None without a defect pixel."""
    return float(_f1_at_edges(histogram).max()) if histogram.has_defect() else None


def _f1_at_edges(histogram: PixelHistogram) -> Floats:
    """F1 at the thresholds 1/256 to 255/256 [255]; there is a defect pixel."""
    return np.array([histogram.f1_at(edge / EDGES) for edge in range(1, EDGES)], np.float64)
