from functools import lru_cache

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

pytestmark = pytest.mark.usefixtures("tensorflow_devices", "shared_application")

SMALL = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "feature_kernel": 5}
HEAD = {"preset": "mobilenet", "adapter_width": 8, "feature_width": 8, "decision_widths": (4, 4, 4)}


def noise(*shape):
    return np.random.default_rng(2).integers(0, 256, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("normalization", "mask"),
    [
        ("batch", {"mask_stride": 2}),
        ("instance", {"mask_normalization": "affine"}),
        ("feature", {"mask_stride": 2, "mask_normalization": "affine"}),
    ],
)
def test_folded_network_equals_the_trained_one(normalization, mask):
    network = build_network(NetworkConfig(**SMALL, **mask, normalization=normalization))
    random = np.random.default_rng(1)
    for variable in network.variables:
        if variable.path.split("/")[-1] in {"gamma", "beta", "moving_mean", "moving_variance", "bias"}:
            variable.assign(random.uniform(0.5, 1.5, variable.shape))
    before, images = network.get_weights(), noise(2, 40, 56, 1)
    found, expected = fold_network(network)(images, training=False), network(images, training=False)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5)
    for one, other in zip(network.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


# === Encoders ===


def test_heads_are_folded_and_their_logits_averaged():
    config = NetworkConfig(**HEAD, encoder="tiny", heads=3, num_classes=3, standardize_features=True)
    network, images = build_network(config), noise(2, 40, 56, 1)
    for layer in all_layers(network):
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.5
    network(images, training=True)
    outputs, served = network(images, training=False), fold_network(network)(images, training=False)
    single = [network.without_fold(head)(images, training=False) for head in range(3)]
    mean = np.mean([one["mask_logits"] for one in single], axis=0)
    np.testing.assert_allclose(outputs["mask_logits"], mean, atol=1e-6)
    assert np.ptp([one["class_logits"] for one in single], axis=0).max() > 0
    for name in outputs:
        np.testing.assert_allclose(served[name], outputs[name], rtol=1e-5, atol=1e-5)
    pairs = zip(network.decisions, network.segment(images, training=False), strict=True)
    odds = np.mean([decide((features, coarse))[:, 0] for decide, (features, coarse, _) in pairs], axis=0)
    score = np.exp(outputs["class_logits"][:, 1:]).sum(axis=1)
    np.testing.assert_allclose(score, 1 / (1 + np.exp(-odds)), rtol=1e-5)


@lru_cache(maxsize=1)  # large networks
def signalling(encoder, channels):
    """A network with an encoder, random weights and measured statistics; tests do not change it."""
    keras.utils.set_random_seed(5)
    config = NetworkConfig(**HEAD, encoder=encoder, input_channels=channels, mask_stride=1)
    network, random = build_network(config), np.random.default_rng(1)
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
    network(noise(2, 64, 64, channels), training=True)
    return network


ROWS = [slow_case(encoder, 3) for encoder in ENCODERS if encoder != "mobilenet"]  # tiny is one


# The means of resnet50 differ by channel: grey is not the same for each.
@pytest.mark.parametrize(("encoder", "channels"), [("tiny", 1), slow_case("resnet50", 1), *ROWS])
def test_folded_encoder_equals_the_trained_one(encoder, channels):
    """Depthwise convolutions, those with a bias, in groups, dense layers; grey and colour; padded sides."""
    network, images = signalling(encoder, channels), noise(2, 40, 56, channels)
    served = fold_network(network)
    expected, found = network(images, training=False), served(images, training=False)
    for name, answer in expected.items():
        assert np.std(answer) > 0
        np.testing.assert_allclose(found[name], answer, rtol=0, atol=1e-4 * np.abs(answer).max())
    kinds = {type(layer).__name__ for layer in served.backbone.layers}
    assert not kinds & {"BatchNormalization", "ReplicaBatchNormalization", "LayerScale", "Dense", "Dropout"}
    assert not [one for one in served.backbone.layers if getattr(one, "groups", 1) > 1]


def test_half_precision_keeps_pixels_exact():
    network, images = signalling("tiny", 1), noise(1, 40, 56, 1)
    served = fold_network(network, "mixed_bfloat16")
    expected, found = network(images, training=False), served(images, training=False)
    assert served.encoder.get_layer("pixels").compute_dtype == "float32"
    logits = np.asarray(expected["mask_logits"])
    assert np.abs(found["mask_logits"] - logits).mean() < 0.1 * logits.std()
