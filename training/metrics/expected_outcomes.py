"""What to expect of 1,000 parts, from the shares of good and defective parts with each outcome."""

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import ExpectedOutcomes, ExpectedParts
from training.metrics.intervals import exact_interval

PARTS = 1000


def expect_outcomes(
    good: NDArray[np.float64],
    defective: NDArray[np.float64],
    threshold: float,
    review: float | None,
    defect_rate: float,
) -> ExpectedOutcomes | None:
    """Returns what to expect of 1,000 parts, a share `defect_rate` of them defective.

    `good` and `defective` are the scores [N] of the worst photographs of the parts. None if one kind is
    missing.
    """
    if not len(good) or not len(defective):
        return None
    lowest = threshold if review is None else review
    kinds = ((good, 1 - defect_rate), (defective, defect_rate))
    return ExpectedOutcomes(
        defect_rate=defect_rate,
        rejected=_expect(*((scores >= threshold, weight) for scores, weight in kinds)),
        review=_expect(*(((scores >= lowest) & (scores < threshold), weight) for scores, weight in kinds)),
        missed=_expect((defective < lowest, defect_rate)),
    )


def _expect(*kinds: tuple[NDArray[np.bool_], float]) -> ExpectedParts:
    """Weighted sum of shares, with the interval that follows from the exact ones of the shares.

    Reference: Zou and Donner 2008, Construction of confidence limits about effect measures.
    """
    value, below, above = 0.0, 0.0, 0.0
    for outcome, weight in kinds:
        share, interval = float(outcome.mean()), exact_interval(int(outcome.sum()), len(outcome))
        value += weight * share
        below += (weight * (share - interval.low)) ** 2
        above += (weight * (interval.high - share)) ** 2
    low, high = max(value - below**0.5, 0.0), min(value + above**0.5, 1.0)
    return ExpectedParts(value=PARTS * value, low=PARTS * low, high=PARTS * high)
