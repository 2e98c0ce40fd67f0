import math

import numpy as np
import pytest
from scipy.special import expit

from segdec.config import Calibration
from training.metrics.calibration import (
    align_log_odds,
    apply_calibration,
    fit_calibration,
    measure_reliability,
)


def drawn(slope, intercept, count=20000, seed=0):
    """Log-odds, and truths drawn with the probability that the line makes of them."""
    generator = np.random.default_rng(seed)
    odds = generator.normal(0, 3, count)
    return (generator.random(count) < expit(slope * odds + intercept)).astype(int), odds


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.5, -2.0), (3.0, 1.0)])
def test_many_photographs_give_the_line_that_they_follow(slope, intercept):
    labels, odds = drawn(slope, intercept)
    found = fit_calibration(labels, odds)
    assert found.slope == pytest.approx(slope, rel=0.05)
    assert found.intercept == pytest.approx(intercept, abs=0.1)
    assert found.defect_rate == labels.mean()


def test_few_photographs_hardly_move_the_line_from_where_it_is_expected():
    found = fit_calibration([0, 0, 0, 1], [-0.1, 0.0, 0.1, 0.05])
    assert found.slope == pytest.approx(1, rel=0.1)
    assert found.intercept == pytest.approx(math.log(1 / 3), abs=0.3)  # the share of defective ones alone


def test_few_photographs_of_a_network_that_knows_the_share_keep_its_log_odds():
    found = fit_calibration([0, 0, 0, 1], [-2.1, -2.0, -1.9, -1.95], balanced=False)
    assert found.intercept == pytest.approx(0, abs=0.6)
    many, odds = drawn(1.0, 0.0)
    lines = [fit_calibration(many, odds, balanced=balanced) for balanced in (True, False)]
    assert lines[0].intercept == pytest.approx(lines[1].intercept, abs=0.01)


def test_separated_photographs_leave_a_finite_line():
    found = fit_calibration([0] * 30 + [1] * 5, [-3.0] * 30 + [3.0] * 5)
    assert 0.5 < found.slope < 10
    low, high = apply_calibration(found, [-3.0, 3.0])
    assert low < 0.1
    assert high > 0.9


def test_scores_that_rank_the_wrong_way_round_still_rise_with_the_log_odds():
    assert 0 < fit_calibration([0] * 50 + [1] * 50, [3.0] * 50 + [-3.0] * 50).slope < 0.1


@pytest.mark.parametrize("labels", [[0, 0], [1, 2]])
def test_one_kind_alone_is_refused(labels):
    with pytest.raises(ValueError, match=r"2 images are defective\. Expected good and defective ones"):
        fit_calibration(labels, [0.0, 1.0])


def test_applied_calibration_is_the_sigmoid_of_the_line():
    scores = apply_calibration(Calibration(slope=2.0, intercept=-1.0), [0.5, 1.0, -1e6])
    assert scores == pytest.approx([0.5, 1 / (1 + math.exp(-1)), 0])


# === Other networks ===


def test_good_photographs_tell_how_another_network_scales():
    # Theirs lie about 10 with a spread of 2, ours about −1 with a spread of 1.
    moved = align_log_odds([10.0, 16.0], [8.0, 10.0, 12.0], [-2.0, -1.0, 0.0])
    assert moved == pytest.approx([-1.0, 2.0])


def test_a_stretch_is_bounded():
    theirs, ours = [0.0, 1e-6, 2e-6], [-9.0, 0.0, 9.0]
    assert align_log_odds([1.0], theirs, ours) == pytest.approx([2.0], abs=1e-5)
    assert align_log_odds([1.0], ours, theirs) == pytest.approx([0.5], abs=1e-5)


@pytest.mark.parametrize(("theirs", "ours"), [([5.0], [1.0, 2.0, 3.0]), ([5.0, 5.0], [1.0, 2.0, 3.0])])
def test_where_no_spread_is_known_scores_are_moved_alone(theirs, ours):
    assert align_log_odds([6.0], theirs, ours) == pytest.approx([3.0])


# === Reliability ===


def test_reliability_by_hand():
    found = measure_reliability([0, 1, 0, 1], [0.15, 0.15, 0.95, 0.95])
    assert found.scores == pytest.approx([0.15, 0.95])
    assert found.shares == pytest.approx([0.5, 0.5])
    assert found.weights == pytest.approx([0.5, 0.5])
    assert found.expected_error == pytest.approx(0.5 * 0.35 + 0.5 * 0.45)
    assert found.brier == pytest.approx((0.15**2 + 0.85**2 + 0.95**2 + 0.05**2) / 4)


def test_reliability_of_certain_and_right_scores_is_perfect():
    found = measure_reliability([0, 1], [0.0, 1.0])
    assert (found.expected_error, found.brier) == (0, 0)


def test_photographs_are_weighted_to_the_share_that_the_score_is_for():
    # Two good and two defective ones count 0.9 and 0.1: good 0.45 each, defective 0.05 each.
    found = measure_reliability([0, 0, 1, 1], [0.05, 0.25, 0.25, 0.95], 0.1)
    assert found.weights == pytest.approx([0.45, 0.5, 0.05])
    assert found.shares == pytest.approx([0, 0.1, 1])
    assert found.expected_error == pytest.approx(0.45 * 0.05 + 0.5 * 0.15 + 0.05 * 0.05)


def test_calibrated_scores_are_reliable():
    labels, odds = drawn(0.5, -2.0)
    line = fit_calibration(labels[:10000], odds[:10000])
    before = measure_reliability(labels[10000:], expit(odds[10000:]))
    after = measure_reliability(labels[10000:], apply_calibration(line, odds[10000:]))
    assert after.expected_error < 0.02 < before.expected_error
    assert after.brier < before.brier


@pytest.mark.parametrize("labels", [[], [0, 0], [1, 1]])
def test_one_kind_alone_has_no_reliability(labels):
    assert measure_reliability(labels, [0.5] * len(labels)) is None
