"""From the network's log-odds to a probability: a line, fitted to photographs it did not learn from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from segdec.config import Calibration

EXPECTED_SPREAD = 1.0
"""Standard deviation of the slope's logarithm, and of the intercept, before any photograph is seen."""

SLOPES = 0.01, 100.0
"""Least and greatest slope: scores that tell nothing apart would ask for none."""
INTERCEPTS = -1000.0, 1000.0
"""Least and greatest intercept."""

STRETCH = 2.0
"""By how much scores of another network are stretched at most."""

BINS = 10
"""Of the reliability diagram, equally wide, as usual for the expected calibration error."""

Floats = NDArray[np.float64]


def fit_calibration(
    labels: ArrayLike, log_odds: ArrayLike, defect_rate: float | None = None, *, balanced: bool = True
) -> Calibration:
    """Fits slope and intercept to photographs [N], some good and some defective.

    The likeliest line, given that a network which was trained on as many defective as good images mostly
    answers with log-odds that need no stretching, and only the share of defective ones added. A few
    photographs move it little from there, many go wherever they ask for.
    Reference: Platt 1999, Probabilistic outputs for support vector machines; the prior is our own.

    Args:
        labels: Class indices; other than 0 is defective.
        log_odds: The network's own.
        defect_rate: Share of defective photographs for which the score shall be a probability; None for
            that of these photographs.
        balanced: Whether the network was trained so; else its log-odds know the share already.

    Raises:
        ValueError: If there is no good or no defective one.
    """
    defective, odds = np.asarray(labels) != 0, np.asarray(log_odds, np.float64)
    count = int(defective.sum())
    if not count or count == len(defective):
        raise ValueError(f"{count} of {len(defective)} photographs are defective. Expected good ones, too.")
    share = count / len(defective)
    expected = logit(share) if balanced else 0.0

    def loss(line: Floats) -> tuple[float, Floats]:
        """Negative logarithm of the likelihood times the prior, and its gradient."""
        stretched = np.exp(line[0]) * odds
        moved = stretched + line[1] + expected
        cross_entropy = np.logaddexp(0.0, moved) - defective * moved
        errors = expit(moved) - defective
        gradient = np.array([errors @ stretched, errors.sum()]) + line / EXPECTED_SPREAD**2
        return float(cross_entropy.sum() + 0.5 * np.sum((line / EXPECTED_SPREAD) ** 2)), gradient

    bounds = [tuple(np.log(SLOPES)), INTERCEPTS]
    stretch, shift = minimize(loss, np.zeros(2), jac=True, bounds=bounds).x
    rate = share if defect_rate is None else defect_rate
    slope, intercept = (
        np.clip(np.exp(stretch), *SLOPES),
        np.clip(shift + expected - logit(share) + logit(rate), *INTERCEPTS),
    )
    return Calibration(slope=float(slope), intercept=float(intercept), defect_rate=rate)


def apply_calibration(calibration: Calibration, log_odds: ArrayLike) -> Floats:
    """Returns the image scores, 0 to 1, of the network's log-odds."""
    return np.asarray(expit(calibration.slope * np.asarray(log_odds, np.float64) + calibration.intercept))


def align_log_odds(log_odds: ArrayLike, good: ArrayLike, own_good: ArrayLike) -> Floats:
    """Moves the log-odds [N] that another network gave to where this network would have given them.

    Networks trained on other parts of a data set agree in the order of their scores, not in their scale.
    The good photographs, of which there are many, tell it: their median and spread become those of this one.

    Args:
        log_odds: Of the other network.
        good: Those that it gave good photographs.
        own_good: Those that this network gave good photographs.
    """
    theirs, ours = np.asarray(good, np.float64), np.asarray(own_good, np.float64)
    stretch = 1.0
    if not len(theirs) or not len(ours):
        return np.asarray(log_odds, np.float64)
    if len(theirs) > 1 and len(ours) > 1 and theirs.std() > 0:
        stretch = float(np.clip(ours.std() / theirs.std(), 1 / STRETCH, STRETCH))
    moved = np.asarray(log_odds, np.float64) - np.median(theirs)
    return np.asarray(np.median(ours) + stretch * moved)


@dataclass(frozen=True)
class Reliability:
    """How far scores are probabilities.

    Attributes:
        scores: Mean score of each bin that holds photographs [K].
        shares: Share of defective photographs in it [K].
        weights: Share of all photographs that it holds [K]; they sum to 1.
        expected_error: Expected calibration error: mean of |share − score| over the photographs.
        brier: Mean of (score − truth)² over the photographs.
    """

    scores: Floats
    shares: Floats
    weights: Floats
    expected_error: float
    brier: float


def measure_reliability(
    labels: ArrayLike, scores: ArrayLike, defect_rate: float | None = None
) -> Reliability | None:
    """Compares scores [N] with how many of the photographs are defective.

    Args:
        labels: Class indices; other than 0 is defective.
        scores: Image scores, 0 to 1.
        defect_rate: Photographs count as if this share of them were defective; None: as they are.

    Returns:
        None unless there are good and defective ones.

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
