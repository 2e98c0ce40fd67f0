"""One score from heads and memory: the formula, and the network that contains it."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras

from segdec.config import NetworkConfig
from segdec.network.folding import fold_network
from segdec.network.layers import all_layers
from segdec.network.network import build_network
from segdec.network.score_combination import Evidence, ScoreCombination
from tests.segdec.network.trained_encoder import HEAD


@pytest.mark.parametrize("decided", [[1.0, 4], [3, 7, -2]])
def test_the_evidence_is_the_log_odds_and_the_highest_logits(decided):
    """The difference of two logits, or the first of several; both heads' mean highest; the memory's."""
    masks, memory = [np.full((1, 2, 2, 2), -5.0) for _ in range(2)], np.full((1, 1, 2, 1), -3.0)
    masks[0][0, 1, 0, 1], masks[1][0, 0, 0, 0], memory[0, 0, 1] = 6, 2, 2
    found = Evidence()([[np.array([decided])], [memory], masks, []])
    np.testing.assert_allclose(found, [[3, 4, 2]], rtol=1e-6)
    found = Evidence()([[np.array([decided])], [memory], masks, [np.array([[7]])]])
    np.testing.assert_allclose(found, [[3, 4, 2, 7]], rtol=1e-6)


@pytest.mark.parametrize("decided", [[1.0, 4], [3, 7, -2]])
def test_an_unusual_photograph_keeps_its_high_score(decided):
    """By hand: 2 · 3 + 0.5 · 4 − 1 = 7; with the memory at 31, log(e⁷ + e³⁰) = 30; at first no change."""
    layer, decided = ScoreCombination(), np.tile(np.array([decided], np.float32), (2, 1))
    evidence = np.array([[3, 4, -9], [3, 4, 31]], np.float32)
    np.testing.assert_array_equal(layer([decided, evidence]), decided)
    layer.set_combination(np.array([2, 0.5, 0]), -1)
    changed = np.array(layer([decided, evidence])) - decided
    place = 0 if decided.shape[1] > 2 else 1
    np.testing.assert_allclose(changed[:, place], [4, 27], rtol=1e-5)
    assert not np.delete(changed, place, axis=1).any()


IMAGES = np.random.default_rng(2).integers(0, 256, (2, 40, 56, 1)).astype(np.float32)


@pytest.fixture(scope="module")
def network(tiny_encoder):
    """Two heads with statistics of their own, and a memory of random patches."""
    keras.utils.set_random_seed(3)
    fields = {"heads": 2, "memory": 20, "num_classes": 3, "pooled_score": True}
    fields |= {"standardize_features": True, "linear_mask": True}
    network, random = (
        build_network(NetworkConfig(**HEAD, **fields, encoder=tiny_encoder)),
        np.random.default_rng(5),
    )
    for layer in all_layers(network):
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.moving_mean.assign(random.normal(0, 0.2, layer.moving_mean.shape))
            layer.moving_variance.assign(random.uniform(0.5, 1.5, layer.moving_variance.shape))
        if layer.name.startswith("linear_") and layer.weights:
            layer.kernel.assign(random.normal(0, 1.0, layer.kernel.shape))
    return network


def set_fitted_layers(network):
    number, random = network.pooled_score.center.shape[0], np.random.default_rng(6)
    maps = [(random.normal(size=number), 0.5) for _ in range(3)]
    network.pooled_score.set_maps(maps, np.ones(number), (-100, 100))
    network.combination.set_combination(np.array([0.5, 0.25, 0.125, 0.25]), 0.75)


@pytest.mark.slow
def test_the_logits_of_the_heads_are_averaged(network):
    """At first the memory changes nothing."""
    outputs, heads = network(IMAGES, training=False), network.segment(IMAGES, training=False)
    np.testing.assert_allclose(outputs["mask_logits"], np.mean([mask for *_, mask in heads], 0), atol=1e-6)
    pairs = zip(network.decisions, heads, strict=True)
    odds = [decide((features, coarse))[:, 0] for decide, (features, coarse, _) in pairs]
    assert np.ptp(odds, axis=0).max() > 0
    score = np.exp(outputs["class_logits"][:, 1:]).sum(axis=1)
    np.testing.assert_allclose(score, 1 / (1 + np.exp(-np.mean(odds, axis=0))), rtol=1e-5)
    set_fitted_layers(network)  # for the next tests, too
    assert np.abs(network(IMAGES)["class_logits"] - outputs["class_logits"]).max() > 0


def test_a_network_without_a_fold_has_its_head_and_its_memory(network):
    features = network.encoder(IMAGES)
    answers = network.without_fold(1)(IMAGES)
    for name, answer in network.without_fold(1, encoded=True)(features).items():
        np.testing.assert_allclose(answers[name], answer, rtol=1e-5, atol=1e-5)
    _, _, mask = network.segment(features, training=False)[1]
    np.testing.assert_allclose(answers["mask_logits"], mask, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_network_without_a_fold_uses_the_map_of_pooled_features_without_it(network):
    set_fitted_layers(network)
    kept, part = network.pooled_score.get_weights(), network.without_fold(1)
    expected = part(IMAGES)["class_logits"]
    for place, changes in ((0, False), (1, False), (2, True)):
        kernel, _ = network.pooled_score.maps[place]
        kernel.assign(2 * kernel)
        assert np.array_equal(part(IMAGES)["class_logits"], expected) != changes
    network.pooled_score.set_weights(kept)


def test_folding_keeps_the_heads_and_the_combination(network):
    expected, served = network(IMAGES, training=False), fold_network(network)
    for name, answer in served(IMAGES, training=False).items():
        np.testing.assert_allclose(answer, expected[name], rtol=1e-4, atol=1e-4)
    assert (
        served.count_params()
        < network.count_params() - 2 * served.memory.get_layer("nearest_patch").count_params()
    )


def test_training_changes_heads_and_decisions_only(network):
    built = (network.memory, network.combination, network.pooled_score)
    assert not any(part.trainable_variables for part in built)
