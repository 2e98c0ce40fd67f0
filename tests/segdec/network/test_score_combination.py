"""One score from heads and memory: the formula, and the network that contains it."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras

from segdec.config import NetworkConfig
from segdec.network.folding import fold_network
from segdec.network.network import build_network
from segdec.network.score_combination import Evidence, ScoreCombination

pytestmark = pytest.mark.usefixtures("tensorflow_devices", "shared_application")


@pytest.mark.parametrize("decided", [[1.0, 4], [3, 7, -2]])
def test_the_evidence_is_the_log_odds_and_the_highest_logits(decided):
    """The difference of two logits, or the first of several; both heads' mean highest; the memory's."""
    masks, memory = [np.full((1, 2, 2, 2), -5.0) for _ in range(2)], np.full((1, 1, 2, 1), -3.0)
    masks[0][0, 1, 0, 1], masks[1][0, 0, 0, 0], memory[0, 0, 1] = 6, 2, 2
    found = Evidence()([np.array([decided]), memory, *masks])
    np.testing.assert_allclose(found, [[3, 4, 2]], rtol=1e-6)


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


@pytest.fixture(scope="module")
def network(tiny_encoder):
    """Two heads and a memory of random patches."""
    keras.utils.set_random_seed(3)
    network = build_network(
        NetworkConfig(preset="mobilenet", encoder=tiny_encoder, heads=2, memory=20, num_classes=3)
    )
    network.combination.set_combination(np.array([0.5, 0.25, 0.125]), 0.75)
    return network


def test_a_network_without_a_fold_has_its_head_and_its_memory(network):
    images = np.random.default_rng(2).integers(0, 256, (2, 40, 56, 1)).astype(np.float32)
    features = network.encoder(images)
    for fold in range(2):
        found = network.without_fold(fold)(images)
        for name, answer in network.without_fold(fold, encoded=True)(features).items():
            np.testing.assert_allclose(found[name], answer, rtol=1e-5, atol=1e-5)
        _, _, mask = network.segment(images, training=False)[fold]
        np.testing.assert_allclose(found["mask_logits"], mask, rtol=1e-5, atol=1e-5)
        assert not np.array_equal(found["class_logits"], network(images)["class_logits"])


def test_folding_keeps_the_combination(network):
    images = np.random.default_rng(2).integers(0, 256, (2, 40, 56, 1)).astype(np.float32)
    expected, served = network(images, training=False), fold_network(network)
    for name, answer in served(images, training=False).items():
        np.testing.assert_allclose(answer, expected[name], rtol=1e-4, atol=1e-4)
    assert (
        served.count_params()
        < network.count_params() - 2 * served.memory.get_layer("nearest_patch").count_params()
    )


def test_training_changes_heads_and_decisions_only(network):
    built = (network.memory, network.combination)
    assert not any(part.trainable_variables for part in built)
