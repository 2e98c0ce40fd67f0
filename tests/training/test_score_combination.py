"""Weights of decision, mask and memory."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from training.score_combination import DECISION_ALONE, fit_combination


def made(labels, *columns):
    random = np.random.default_rng(0)
    noise = random.normal(size=(len(labels), 3))
    return noise + np.stack([weight * labels for weight in columns], axis=1)


LABELS = np.arange(60) % 3 == 0


def test_each_informative_score_gets_a_weight():
    weights, bias = fit_combination(LABELS, made(LABELS, 2, 2, 2), balanced=True)
    assert (weights > 0.3).all()
    scaled = made(LABELS, 2, 2, 2) * [1, 10, 1] + [0, 0, 7]
    others, shifted = fit_combination(LABELS, scaled, balanced=True)
    np.testing.assert_allclose(others, weights / [1, 10, 1], rtol=1e-3)
    assert shifted == pytest.approx(bias - 7 * weights[2], rel=1e-3)


def test_a_score_that_is_higher_for_good_is_ignored():
    weights, _ = fit_combination(LABELS, made(LABELS, 2, 2, -3), balanced=True)
    assert weights[2] == 0 and (weights[:2] > 0).all()


def test_balanced_weights_expect_as_many_defective_as_good_images():
    (_, even), (_, own) = (fit_combination(LABELS, made(LABELS, 2, 0, 0), balanced=b) for b in (True, False))
    assert even == pytest.approx(own + np.log(2), abs=0.15)


@pytest.mark.parametrize(
    ("labels", "evidence"),
    [
        (LABELS, made(LABELS, -2, 2, 2)),
        (LABELS, np.ones((60, 3))),
        (np.arange(60) < 4, made(np.arange(60) < 4, 2, 2, 2)),
        (np.arange(60) >= 0, np.ones((60, 3))),
    ],
    ids=["decision is wrong", "identical photographs", "few defects", "no good ones"],
)
def test_otherwise_the_decision_alone_counts(labels, evidence):
    weights, bias = fit_combination(labels, evidence, balanced=True)
    np.testing.assert_array_equal(weights, DECISION_ALONE)
    assert bias == 0
