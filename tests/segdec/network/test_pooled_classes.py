"""Features pooled over the defect, and the network whose classes they determine."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras

from segdec.config import NetworkConfig
from segdec.encoders import JOINED_STRIDES
from segdec.network.folding import fold_network
from segdec.network.network import DEFECT_WEIGHTS, build_network
from segdec.network.pooled_classes import KINDS, DefectWeights, PooledClasses, weights_of_stride
from tests.segdec.network.trained_encoder import HEAD
from tests.tiny_encoder import load_encoder

ENGINES = ("tensorflow", "tensorflow-bfloat16", "openvino", "openvino-bfloat16", "openvino-int8")


def test_weights_follow_the_mask_and_with_the_memory_the_cells_that_differ_most():
    random = np.random.default_rng(0)
    masks = [random.normal(0, 4, (2, 3, 3, 1)).astype(np.float32) for _ in range(2)]
    memory = random.normal(0, 4, (2, 3, 3, 1)).astype(np.float32)
    mask = (masks[0] + masks[1]) / 2
    for unlike in ([], [memory]):
        expected = np.concatenate([1 / (1 + np.exp(-mask)), np.exp(sum(unlike, mask))], axis=-1)
        expected /= expected.sum(axis=(1, 2), keepdims=True)
        np.testing.assert_allclose(DefectWeights()([masks, unlike]), expected, rtol=1e-4)


def test_a_cell_counts_with_its_likeliest_class_however_high_its_logit():
    mask = np.full((1, 2, 2, 2), -9000, np.float32)
    mask[0, 1, 0, 1] = 9000
    np.testing.assert_allclose(DefectWeights()([[mask], []])[0, ..., 0], [[0, 0], [1, 0]], atol=1e-6)


def test_cells_of_coarse_features_weigh_as_much_as_the_cells_in_them():
    """By hand: 3 × 3 cells in 2 × 2 means of 4 and 1 cells, 0.8 / 4 and 0.2, so half of the weight each."""
    weights = np.zeros((1, 3, 3, 1), np.float32)
    weights[0, 0, 0], weights[0, 2, 2] = 0.8, 0.2
    np.testing.assert_allclose(weights_of_stride(weights, 16)[0, ..., 0], [[0.5, 0], [0, 0.5]])
    np.testing.assert_array_equal(weights_of_stride(weights, 4), weights)


def test_the_map_replaces_the_classes_only():
    """By hand: the first kind of weights selects the left cell, 1 · 2 + 0.5; the second the right, 3 · 11."""
    features = [
        np.array([[[[2, 9], [9, -1]]]], np.float32),
        np.array([[[[9, 9], [9, 5]]]], np.float32),
        np.array([[[[7]]]], np.float32),
    ]
    weights = np.array([[[[1, 0], [0, 1]]]], np.float32)
    layer, inputs = PooledClasses(folds=1), [np.array([[4, 7, -2]], np.float32), weights, *features]
    np.testing.assert_array_equal(layer(inputs), inputs[0])
    kernel = np.zeros((2, 5, 2))
    kernel[0, 0, 0], kernel[1, [1, 3, 4], 1] = 1, 3
    kernel = kernel.reshape(10, 2)
    layer.set_map(kernel, np.array([0.5, 0]))
    np.testing.assert_allclose(layer(inputs), [[4, 2.5, 33]])
    np.testing.assert_array_equal(layer(inputs, without=0), [[4, 0, 0]])
    layer.set_map(2 * kernel, np.zeros(2), without=0)
    np.testing.assert_allclose(layer(inputs, without=0), [[4, 4, 66]])
    np.testing.assert_allclose(layer(inputs), [[4, 2.5, 33]])
    layer.use_decision()
    np.testing.assert_array_equal(layer(inputs), inputs[0])


IMAGES = np.random.default_rng(2).integers(0, 256, (4, 40, 56, 1), dtype=np.uint8)


def build(encoder, weights, **fields):
    keras.utils.set_random_seed(3)
    config = NetworkConfig(**HEAD, encoder=encoder, heads=2, num_classes=4, **fields)
    network = build_network(config)
    load_encoder(network, weights)
    return network


@pytest.fixture(scope="module", params=[0, 20], ids=["without memory", "with memory"])
def network(request, tiny_encoder, tiny_encoder_weights):
    """A network whose classes are those of a random map, as distinct as the decision network's are alike."""
    network = build(tiny_encoder, tiny_encoder_weights, memory=request.param, pooled_classes=True)
    channels = sum(network.encoder.output[f"joined_{stride}"].shape[-1] for stride in JOINED_STRIDES)
    kernel = np.random.default_rng(5).normal(size=(KINDS * channels, 3))
    network.pooled_classes.set_map(kernel, np.zeros(3))
    logits = keras.Model(network.input, network.get_layer("pooled_classes").output)(IMAGES)[:, 1:]
    deviation = np.std(logits, axis=0)
    network.pooled_classes.set_map(kernel / deviation, -np.mean(logits, axis=0) / deviation)
    return network


def test_the_score_does_not_depend_on_the_classes(network):
    changed, kept = network(IMAGES)["class_logits"], network.pooled_classes.get_weights()
    network.pooled_classes.use_decision()
    decided = network(IMAGES)["class_logits"]
    network.pooled_classes.set_weights(kept)
    np.testing.assert_array_equal(changed[:, 0], decided[:, 0])
    assert np.ptp(np.argmax(changed[:, 1:], axis=1)) > 0
    assert np.abs(changed - decided)[:, 1:].max() > 0.5


def test_at_first_the_decision_network_determines_the_classes(tiny_encoder, tiny_encoder_weights):
    pair = [build(tiny_encoder, tiny_encoder_weights, memory=20, pooled_classes=on) for on in (True, False)]
    outputs = [network(IMAGES) for network in pair]
    for name in outputs[0]:
        np.testing.assert_array_equal(outputs[0][name], outputs[1][name])
    weights = pair[0].weights[: -len(pair[0].pooled_classes.weights)]
    assert [one.path for one in weights] == [one.path for one in pair[1].weights]


def test_one_class_of_defects_needs_no_pooling(tiny_encoder):
    config = NetworkConfig(**HEAD, encoder=tiny_encoder, heads=2, pooled_classes=True)
    network = build_network(config)
    assert network.pooled_classes is None
    assert DEFECT_WEIGHTS not in [layer.name for layer in network.layers]


def test_folding_keeps_the_classes(network):
    expected, served = network(IMAGES), fold_network(network)
    np.testing.assert_allclose(served(IMAGES)["class_logits"], expected["class_logits"], rtol=1e-4, atol=1e-4)
    assert not network.pooled_classes.trainable_variables


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_each_engine_gives_the_classes_of_the_network(network, tmp_path, name):
    engines = pytest.importorskip("segdec.engines")
    pytest.importorskip("nncf" if name.endswith("int8") else engines.ENGINES[name].package)
    from segdec.export.model_export import write_engine

    write_engine(name, network, tmp_path / name, list(IMAGES))
    loaded = engines.ENGINES[name].load(tmp_path / name, size=IMAGES.shape[1:3])
    tolerance = 1e-3 if engines.ENGINES[name].precision == "float32" else 0.3
    for asked in (IMAGES, IMAGES[:1, :32, :40]):
        expected = np.asarray(network(asked)["class_logits"])[:, 1:]
        answered = loaded.infer(asked).classes[:, 1:]
        by_class = [logits - logits.mean(axis=1, keepdims=True) for logits in (answered, expected)]
        np.testing.assert_allclose(*by_class, atol=tolerance)
