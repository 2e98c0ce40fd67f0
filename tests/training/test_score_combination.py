"""Weights of decision, mask, memory and pooled features."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from segdec.network.pooled_score import PooledScore
from tests.training.separable_classes import make_separable
from training.data.subsets import pick_evenly
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
    for fold in (0, 1, 2, 3):
        kernel, bias = fit_log_odds(statistics[folds != fold], defective[folds != fold])
        expected = statistics @ kernel + bias
        np.testing.assert_allclose(log_odds[folds == fold], expected[folds == fold])
        found = layer(statistics.astype(np.float32), without=fold - 1 if fold else None)[:, 0]
        np.testing.assert_allclose(found, expected.clip(log_odds.min(), log_odds.max()), rtol=1e-3)


def test_a_fold_with_all_defects_has_no_pooled_score():
    statistics, classes = make_separable(np.repeat([1, 0], 20))
    layer = PooledScore(folds=2)
    layer(statistics[:1])
    log_odds = fit_pooled_score(layer, statistics, classes == 1, np.repeat([1, 2], 20))
    assert not log_odds.any()
    assert [np.any(kernel) for kernel, _ in layer.maps] == [True, False, False]


def test_the_pooled_score_is_fitted_to_a_bounded_number_of_examples(monkeypatch):
    monkeypatch.setattr("training.score_combination.MAX_EXAMPLES", 10)
    statistics, classes = make_separable(np.arange(60) % 2)
    layer = PooledScore(folds=0)
    layer(statistics[:1])
    fit_pooled_score(layer, statistics, classes == 1, np.ones(60, int))
    picked = [*pick_evenly(range(0, 60, 2), 10), *pick_evenly(range(1, 60, 2), 10)]
    kernel, _ = fit_log_odds(statistics[picked], classes[picked] == 1)
    np.testing.assert_allclose(layer.maps[0][0], kernel, rtol=1e-5)
