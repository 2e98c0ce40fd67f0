import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras

from segdec.config import NetworkConfig
from segdec.encoders import ENCODERS
from segdec.network.folding import fold_network
from segdec.network.layers import all_layers
from segdec.network.network import build_network
from tests.marks import slow_case

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

SMALL = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "feature_kernel": 5}


def trained(**fields):
    """A network whose weights all differ from the initial ones."""
    network = build_network(NetworkConfig(**{**SMALL, **fields}))
    random = np.random.default_rng(1)
    for variable in network.variables:
        if variable.path.split("/")[-1] in {"gamma", "beta", "moving_mean", "moving_variance", "bias"}:
            variable.assign(random.uniform(0.5, 1.5, variable.shape))
    return network


@pytest.mark.parametrize("normalization", ["batch", "instance", "feature"])
@pytest.mark.parametrize("mask", [{}, {"mask_stride": 2}, {"mask_normalization": "affine"}], ids=str)
def test_folded_network_equals_the_trained_one(normalization, mask):
    network = trained(normalization=normalization, **mask)
    served = fold_network(network)
    images = np.random.default_rng(2).integers(0, 256, (2, 40, 56, 1)).astype(np.float32)
    expected, found = network(images, training=False), served(images, training=False)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5)


def test_trained_network_is_unchanged():
    network = trained()
    before = network.get_weights()
    fold_network(network)
    for one, other in zip(network.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


# === Encoders ===

HEAD = {"preset": "mobilenet", "adapter_width": 8, "feature_width": 8, "decision_widths": (4, 4, 4)}
ROWS = ["tiny", *map(slow_case, ENCODERS)]


def signalling(**fields):
    """A network with an encoder, random weights and measured statistics."""
    keras.utils.set_random_seed(5)
    network, random = build_network(NetworkConfig(**{**HEAD, **fields})), np.random.default_rng(1)
    for layer in all_layers(network):
        for variable in layer.weights:
            if variable.path.endswith(("gamma", "beta", "bias")):
                variable.assign(random.uniform(0.5, 1.0, variable.shape))
            if type(layer).__name__ == "LayerScale":  # 1e-6 at first, which would hide its block
                variable.assign(random.uniform(0.2, 0.5, variable.shape))
            if layer.name == "mask_correction":  # zero at first, which would hide the decoder
                variable.assign(random.normal(0, 0.3, variable.shape))
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0
    images = random.integers(0, 256, (2, 64, 64, network.config.input_channels)).astype(np.float32)
    network(images, training=True)
    return network


@pytest.mark.parametrize("encoder", ROWS)
@pytest.mark.parametrize("fields", [{}, {"mask_stride": 1}, {"input_channels": 3, "mask_stride": 1}], ids=str)
def test_folded_encoder_equals_the_trained_one(encoder, fields, tiny_encoder):  # noqa: ARG001
    """Depthwise convolutions, those with a bias, in groups, dense layers; grey and colour; padded sides."""
    network = signalling(encoder=encoder, **fields)
    served, channels = fold_network(network), network.config.input_channels
    images = np.random.default_rng(2).integers(0, 256, (2, 40, 56, channels)).astype(np.float32)
    expected, found = network(images, training=False), served(images, training=False)
    for name, answer in expected.items():
        assert np.std(answer) > 0
        largest = np.abs(answer).max()
        np.testing.assert_allclose(found[name], answer, rtol=0, atol=1e-4 * largest)


@pytest.mark.parametrize("encoder", ROWS)
def test_folded_layers_of_an_encoder_are_removed(encoder, tiny_encoder):  # noqa: ARG001
    served = fold_network(build_network(NetworkConfig(**HEAD, encoder=encoder)))
    kinds = {type(layer) for layer in served.backbone.layers}
    assert not kinds & {keras.layers.BatchNormalization, keras.layers.Dense, keras.layers.Dropout}
    assert not {"ReplicaBatchNormalization", "LayerScale"} & {kind.__name__ for kind in kinds}
    grouped = [one for one in served.backbone.layers if getattr(one, "groups", 1) > 1]
    assert grouped == []


def test_half_precision_keeps_pixels_exact(tiny_encoder):
    network = signalling(encoder=tiny_encoder)
    served = fold_network(network, "mixed_bfloat16")
    images = np.random.default_rng(2).integers(0, 256, (1, 40, 56, 1)).astype(np.float32)
    expected, found = network(images, training=False), served(images, training=False)
    assert served.encoder.get_layer("pixels").compute_dtype == "float32"
    logits = np.asarray(expected["mask_logits"])
    assert np.abs(found["mask_logits"] - logits).mean() < 0.1 * logits.std()
