"""Statistics of the encoder's features, and their map to log-odds."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from segdec.network.pooled_score import FeatureStatistics, PooledScore


def test_the_statistics_are_mean_and_standard_deviation_of_each_channel():
    random = np.random.default_rng(0)
    features = [random.normal(5, 3, shape).astype(np.float32) for shape in ((2, 4, 6, 3), (2, 2, 3, 2))]
    both = [each for x in features for each in (x.mean(axis=(1, 2)), x.std(axis=(1, 2)))]
    np.testing.assert_allclose(FeatureStatistics()(features), np.concatenate(both, axis=1), rtol=1e-5)


def test_equal_cells_have_the_deviation_0():
    assert not np.any(FeatureStatistics()([np.full((1, 3, 3, 1), 1e4 + 0.1, np.float32)])[:, 1])


def test_each_map_is_selected_by_the_fold_that_it_was_fitted_without():
    """By hand: 2 · 3 − 1 · 4 + 0.5 = 2.5; at first 0."""
    layer, statistics = PooledScore(folds=2), np.array([[3, 4]], np.float32)
    np.testing.assert_array_equal(layer(statistics), [[0]])
    maps = [(np.array([2.0, -1]), 0.5), (np.zeros(2), -1.0), (np.array([0.0, 1]), 0.0)]
    layer.set_maps(maps, np.array([7.0, 9]), (-5, 5))
    assert [layer(statistics, without=fold).numpy().item() for fold in (None, 0, 1)] == [2.5, -1, 4]


def test_log_odds_stay_between_the_limits():
    layer, statistics = PooledScore(folds=0), np.array([[-1e6], [0.5], [1e6]], np.float32)
    layer(statistics)
    layer.set_maps([(np.ones(1), 0.0)], np.zeros(1), (-2, 3))
    np.testing.assert_allclose(layer(statistics)[:, 0], [-2, 0.5, 3])
