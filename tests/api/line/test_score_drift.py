"""Drift of the scores, against numbers worked out by hand."""

import pytest

from api.line.score_drift import HourScores, find_drift


def scores(mean, count=100, sigma=2.0):
    return HourScores(count, mean * count, (mean**2 + sigma**2) * count)


def test_a_shift_of_half_a_sigma_is_a_drift():
    before = [scores(-4.0)] * 12
    drift = find_drift([scores(-3.0)], before)
    assert (drift.now, drift.before, drift.least) == (-3.0, -4.0, 1.0)
    assert drift.towards == "defective"
    assert find_drift([scores(-5.0)], before).towards == "good"
    assert find_drift([scores(-3.01)], before).towards is None


def test_the_threshold_grows_with_the_spread_of_hours():
    # The means of 12 hours are −3 and −5 in turn: sum of squares 12, √(12 / 11) = 1.0445; three of them 3.13.
    before = [scores(-3.0), scores(-5.0)] * 6
    drift = find_drift([scores(-1.5)], before)
    assert drift.least == pytest.approx(3.1334, abs=0.0001)
    assert drift.towards is None
    assert find_drift([scores(-0.8)], before).towards == "defective"


@pytest.mark.parametrize(
    ("now", "before"),
    [
        ([], [scores(-4.0)] * 12),
        ([scores(0.0, 49)], [scores(-4.0)] * 12),
        ([scores(0.0)], [scores(-4.0)] * 11),
    ],
)
def test_there_is_no_drift_without_enough_data(now, before):
    assert find_drift(now, before) is None
