import numpy as np
import pytest

from training.metrics.expected_outcomes import expect_outcomes
from training.metrics.intervals import exact_interval

GOOD = np.linspace(0.005, 0.995, 100)  # ten from 0.9 on, 40 from 0.5
DEFECTIVE = np.linspace(0.025, 0.975, 20)  # two from 0.9 on, ten from 0.5


def test_outcomes_of_a_thousand_parts():
    """Of both kinds 10 % are rejected, 40 % for review and half below; a fifth of the parts is defective."""
    expected = expect_outcomes(GOOD, DEFECTIVE, 0.9, 0.5, 0.2)
    assert expected.defect_rate == 0.2
    assert expected.rejected.value == pytest.approx(100)
    assert expected.review.value == pytest.approx(400)
    assert expected.missed.value == pytest.approx(100)


def test_without_review_all_parts_below_the_threshold_pass():
    expected = expect_outcomes(GOOD, DEFECTIVE, 0.5, None, 0.01)
    assert expected.review.value == 0
    assert expected.rejected.value == pytest.approx(500)
    assert expected.missed.value == pytest.approx(5)


def test_the_interval_of_one_kind_is_the_exact_one():
    missed = expect_outcomes(GOOD, DEFECTIVE, 0.9, 0.5, 0.2).missed
    exact = exact_interval(10, 20)
    assert (missed.low, missed.high) == pytest.approx((200 * exact.low, 200 * exact.high))


def test_the_interval_of_both_kinds_combines_theirs():
    rejected = expect_outcomes(GOOD, DEFECTIVE, 0.9, None, 0.2).rejected
    good, defective = exact_interval(10, 100), exact_interval(2, 20)
    above = np.hypot(0.8 * (good.high - 0.1), 0.2 * (defective.high - 0.1))
    assert rejected.high == pytest.approx(1000 * (0.1 + above))
    assert 0 < rejected.low < 100


def test_both_kinds_are_needed():
    nothing = np.empty(0)
    assert expect_outcomes(GOOD, nothing, 0.5, None, 0.1) is None
    assert expect_outcomes(nothing, DEFECTIVE, 0.5, None, 0.1) is None
