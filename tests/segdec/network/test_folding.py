from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from segdec.config import NetworkConfig
from segdec.encoders import ENCODERS
from segdec.network.folding import fold_network
from segdec.network.network import build_network
from tests.marks import slow_case
from tests.segdec.network.trained_encoder import build_trained, check_served_layers

SMALL = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "feature_kernel": 5}


def noise(*shape):
    return np.random.default_rng(2).integers(0, 256, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("normalization", "mask"),
    [
        ("batch", {"mask_stride": 2}),
        ("instance", {"mask_normalization": "affine"}),
        slow_case("feature", {"mask_stride": 2, "mask_normalization": "affine"}),
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


@pytest.fixture(scope="module")
def trained(tiny_encoder):
    """A network for grey photographs; tests do not change it."""
    return build_trained(tiny_encoder, 1)


@pytest.mark.slow
def test_pixels_are_scaled_by_the_first_kernel(monkeypatch):
    """The means differ by channel: grey is not the same for each."""
    row = replace(ENCODERS["tiny"], mean=(124.0, 117.0, 104.0), deviation=(1.0, 2.0, 3.0), blue_first=True)
    monkeypatch.setitem(ENCODERS, "other_pixels", row)
    check_folded(build_trained("other_pixels", 1))


@pytest.mark.slow
def test_folded_encoder_equals_the_trained_one(trained):
    """At padded sides; see also `test_exports_of_all_encoders_pass_the_check_and_equal_the_network`."""
    check_folded(trained)


def check_folded(network):
    served, images = fold_network(network), noise(2, 40, 56, 1)
    expected, answers = network(images, training=False), served(images, training=False)
    for name, answer in expected.items():
        assert np.std(answer) > 0
        np.testing.assert_allclose(answers[name], answer, rtol=0, atol=1e-4 * np.abs(answer).max())
    check_served_layers(served)


def test_half_precision_keeps_pixels_exact(trained):
    images = noise(1, 40, 56, 1)
    served = fold_network(trained, "mixed_bfloat16")
    expected, answers = trained(images, training=False), served(images, training=False)
    assert served.encoder.get_layer("pixels").compute_dtype == "float32"
    logits = np.asarray(expected["mask_logits"])
    assert np.abs(answers["mask_logits"] - logits).mean() < 0.1 * logits.std()
