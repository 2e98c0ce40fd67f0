"""Weights of decision, mask, memory and pooled features."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from segdec.network.pooled_score import PooledScore
from tests.training.separable_classes import make_separable
from training.discriminant import fit_log_odds
from training.score_combination import fit_combination, fit_pooled_score


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


@pytest.mark.parametrize("wrong", [0, 2])
def test_a_score_that_is_higher_for_good_is_ignored(wrong):
    weights, _ = fit_combination(LABELS, made(LABELS, *np.where(np.arange(3) == wrong, -3, 2)), balanced=True)
    assert weights[wrong] == 0 and (np.delete(weights, wrong) > 0).all()


def test_balanced_weights_expect_as_many_defective_as_good_images():
    (_, even), (_, own) = (fit_combination(LABELS, made(LABELS, 2, 0, 0), balanced=b) for b in (True, False))
    assert even == pytest.approx(own + np.log(2), abs=0.15)


@pytest.mark.parametrize(
    ("labels", "evidence"),
    [
        (LABELS, made(LABELS, -2, -2, -2)),
        (LABELS, np.ones((60, 3))),
        (np.arange(60) < 4, made(np.arange(60) < 4, 2, 2, 2)),
        (np.arange(60) >= 0, np.ones((60, 3))),
    ],
    ids=["all are wrong", "identical photographs", "few defects", "no good ones"],
)
def test_otherwise_the_decision_alone_counts(labels, evidence):
    weights, bias = fit_combination(labels, evidence, balanced=True)
    np.testing.assert_array_equal(weights, [1, 0, 0])
    assert bias == 0


def test_the_pooled_score_of_an_example_comes_from_the_map_without_its_fold():
    statistics, classes = make_separable(np.arange(60) % 2)
    defective, folds = classes == 1, np.repeat([1, 2, 3], 20)
    layer = PooledScore(folds=3)
    layer(statistics[:1])
    log_odds = fit_pooled_score(layer, statistics, defective, folds)
    assert ((log_odds > 0) == defective).all()
    for fold in (1, 2, 3):
        kernel, bias = fit_log_odds(statistics[folds != fold], defective[folds != fold])
        np.testing.assert_allclose(log_odds[folds == fold], statistics[folds == fold] @ kernel + bias)
        found = layer(statistics.astype(np.float32), without=fold - 1)[:, 0]
        np.testing.assert_allclose(found, statistics @ kernel + bias, rtol=1e-3, atol=0.01)
    kernel, bias = fit_log_odds(statistics, defective)
    np.testing.assert_allclose(layer(statistics)[:, 0], statistics @ kernel + bias, rtol=1e-3, atol=0.01)


def test_a_fold_with_all_defects_has_no_pooled_score():
    statistics, classes = make_separable(np.repeat([1, 0], 20))
    layer = PooledScore(folds=2)
    layer(statistics[:1])
    assert not fit_pooled_score(layer, statistics, classes == 1, np.repeat([1, 2], 20))[:20].any()
