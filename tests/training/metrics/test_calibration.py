import math

import numpy as np
import pytest
from scipy.special import expit

from training.metrics.calibration import (
    align_log_odds,
    apply_calibration,
    fit_calibration,
    measure_reliability,
)


def test_many_photographs_give_the_line_that_they_follow():
    generator = np.random.default_rng(0)
    odds = generator.normal(0, 3, 20000)
    labels = (generator.random(20000) < expit(3.0 * odds + 1.0)).astype(int)
    calibration = fit_calibration(labels, odds)
    assert calibration.slope == pytest.approx(3.0, rel=0.05)
    assert calibration.intercept == pytest.approx(1.0, abs=0.1)
    assert calibration.defect_rate == labels.mean()


def test_few_photographs_hardly_move_the_line_from_where_it_is_expected():
    calibration = fit_calibration([0, 0, 0, 1], [-0.1, 0.0, 0.1, 0.05])
    assert calibration.slope == pytest.approx(1, rel=0.1)
    # The share of defective ones alone.
    assert calibration.intercept == pytest.approx(math.log(1 / 3), abs=0.3)


def test_separated_photographs_leave_a_finite_line():
    calibration = fit_calibration([0] * 30 + [1] * 5, [-3.0] * 30 + [3.0] * 5)
    assert 0.5 < calibration.slope < 10
    low, high = apply_calibration(calibration, [-3.0, 3.0])
    assert low < 0.1
    assert high > 0.9


@pytest.mark.parametrize("labels", [[0, 0], [1, 2]])
def test_one_kind_alone_is_refused(labels):
    with pytest.raises(ValueError, match=r"2 images are defective\. Expected good and defective ones"):
        fit_calibration(labels, [0.0, 1.0])


# === Other networks ===


def test_good_photographs_show_how_another_network_scales():
    # Theirs lie about 10 with a spread of 2, ours about −1 with a spread of 1.
    moved = align_log_odds([10.0, 16.0], [8.0, 10.0, 12.0], [-2.0, -1.0, 0.0])
    assert moved == pytest.approx([-1.0, 2.0])


# === Reliability ===


def test_photographs_are_weighted_to_the_share_that_the_score_is_for():
    # Two good and two defective ones count 0.9 and 0.1: good 0.45 each, defective 0.05 each.
    reliability = measure_reliability([0, 0, 1, 1], [0.05, 0.25, 0.25, 0.95], 0.1)
    assert reliability.scores == pytest.approx([0.05, 0.25, 0.95])
    assert reliability.weights == pytest.approx([0.45, 0.5, 0.05])
    assert reliability.shares == pytest.approx([0, 0.1, 1])
    assert reliability.expected_error == pytest.approx(0.45 * 0.05 + 0.5 * 0.15 + 0.05 * 0.05)
    assert reliability.brier == pytest.approx(0.45 * (0.05**2 + 0.25**2) + 0.05 * (0.75**2 + 0.05**2))


@pytest.mark.parametrize("labels", [[], [0, 0], [1, 1]])
def test_one_kind_alone_has_no_reliability(labels):
    assert measure_reliability(labels, [0.5] * len(labels)) is None
