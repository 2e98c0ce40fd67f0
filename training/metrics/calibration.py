"""Calibration: a linear map from the network's log-odds to those of a probability, fitted to validation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from segdec.config import Calibration

EXPECTED_SPREAD = 1.0
"""Prior standard deviation of the logarithm of the slope, and of the intercept; chosen on the KolektorSDD
folds of docs/evaluation.md."""

SLOPES, INTERCEPTS = (0.01, 100.0), (-1000.0, 1000.0)
"""Limits: scores that separate nothing would give slope 0."""

STRETCH = 2.0
"""Maximum factor by which scores of another network are stretched."""

BINS = 10
"""Bins of equal width of the reliability diagram and the expected calibration error."""

Floats = NDArray[np.float64]


def fit_calibration(
    labels: ArrayLike, log_odds: ArrayLike, defect_rate: float | None = None, *, balanced: bool = True
) -> Calibration:
    """Fits slope and intercept to images [N], some good and some defective.

    The result is the maximum a posteriori line. The prior expects slope 1 and, for a network that was trained
    on as many defective as good images (`balanced`), the log-odds of the defect rate as intercept. With few
    images the line stays close to the prior. The score becomes a probability for `defect_rate`, or for the
    share of defective images among these.
    Reference: Platt 1999, Probabilistic outputs for support vector machines; the prior is our own.

    Raises:
        ValueError: If all images are good, or all are defective.
    """
    defective, odds = np.asarray(labels) != 0, np.asarray(log_odds, np.float64)
    count = int(defective.sum())
    if not count or count == len(defective):
        raise ValueError(
            f"{count} of {len(defective)} images are defective. Expected good and defective ones."
        )
    share = count / len(defective)
    expected = logit(share) if balanced else 0.0

    def loss(line: Floats) -> tuple[float, Floats]:
        """Negative log posterior, and its gradient."""
        stretched = np.exp(line[0]) * odds
        moved = stretched + line[1] + expected
        cross_entropy = np.logaddexp(0.0, moved) - defective * moved
        errors = expit(moved) - defective
        gradient = np.array([errors @ stretched, errors.sum()]) + line / EXPECTED_SPREAD**2
        return float(cross_entropy.sum() + 0.5 * np.sum((line / EXPECTED_SPREAD) ** 2)), gradient

    bounds = [tuple(np.log(SLOPES)), INTERCEPTS]
    stretch, shift = minimize(loss, np.zeros(2), jac=True, bounds=bounds).x
    rate = share if defect_rate is None else defect_rate
    slope = np.clip(np.exp(stretch), *SLOPES)
    intercept = np.clip(shift + expected - logit(share) + logit(rate), *INTERCEPTS)
    return Calibration(slope=float(slope), intercept=float(intercept), defect_rate=rate)


def apply_calibration(calibration: Calibration, log_odds: ArrayLike) -> Floats:
    """Returns image scores, 0 to 1, for log-odds of the network."""
    return np.asarray(expit(calibration.slope * np.asarray(log_odds, np.float64) + calibration.intercept))


def align_log_odds(log_odds: ArrayLike, good: ArrayLike, own_good: ArrayLike) -> Floats:
    """Maps the log-odds [N] of another network to the scale of this network.

    Networks trained on other parts of a data set rank images alike, on different scales. The map gives good
    images the median and standard deviation that they have with this network: `good` are their log-odds with
    the other network, `own_good` with this one.
    """
    odds, theirs, ours = (np.asarray(each, np.float64) for each in (log_odds, good, own_good))
    stretch = 1.0
    if not len(theirs) or not len(ours):
        return odds
    if len(theirs) > 1 and len(ours) > 1 and theirs.std() > 0:
        stretch = float(np.clip(ours.std() / theirs.std(), 1 / STRETCH, STRETCH))
    return np.asarray(np.median(ours) + stretch * (odds - np.median(theirs)))


@dataclass(frozen=True)
class Reliability:
    """How well scores are calibrated.

    Attributes:
        scores: Mean score of each bin that is not empty [K].
        shares: Share of defective images in each bin [K].
        weights: Share of all images in each bin [K]; the sum is 1.
        expected_error: Expected calibration error: mean of |share − score| over the images.
        brier: Mean of (score − truth)² over the images.
    """

    scores: Floats
    shares: Floats
    weights: Floats
    expected_error: float
    brier: float


def measure_reliability(
    labels: ArrayLike, scores: ArrayLike, defect_rate: float | None = None
) -> Reliability | None:
    """Measures calibration errors of scores [N]; None unless there are good and defective images.

    Images are weighted to the share `defect_rate` of defective ones; equally for None.
    References: Guo et al. 2017, On calibration of modern neural networks; Brier 1950.
    """
    truth, given = np.asarray(labels) != 0, np.asarray(scores, np.float64)
    count = np.count_nonzero(truth)
    if not count or count == len(truth):
        return None
    rate = count / len(truth) if defect_rate is None else defect_rate
    weights = np.where(truth, rate / count, (1 - rate) / (len(truth) - count))
    bins = np.minimum((given * BINS).astype(int), BINS - 1)
    mass: Floats = np.bincount(bins, weights, BINS).astype(np.float64)
    used = mass > 0
    mean = np.bincount(bins, weights * given, BINS)[used] / mass[used]
    share = np.bincount(bins, weights * truth, BINS)[used] / mass[used]
    return Reliability(
        scores=mean,
        shares=share,
        weights=mass[used],
        expected_error=float(np.sum(mass[used] * np.abs(share - mean))),
        brier=float(np.sum(weights * (given - truth) ** 2)),
    )
