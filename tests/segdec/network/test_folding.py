import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras

from segdec.config import NetworkConfig
from segdec.network.folding import fold_network, fourier_layers
from segdec.network.fourier_convolution import FourierConv2D
from segdec.network.network import build_network

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

SMALL = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "feature_kernel": 5}


def trained(**fields):
    """A network none of whose weights is what it began with."""
    network = build_network(NetworkConfig(**{**SMALL, **fields}))
    random = np.random.default_rng(1)
    for variable in network.variables:
        if variable.path.split("/")[-1] in {"gamma", "beta", "moving_mean", "moving_variance", "bias"}:
            variable.assign(random.uniform(0.5, 1.5, variable.shape))
    return network


@pytest.mark.parametrize("normalization", ["batch", "instance", "feature"])
@pytest.mark.parametrize("mask", [{}, {"mask_stride": 2}, {"mask_normalization": "affine"}], ids=str)
def test_answers_are_those_of_the_trained_network(normalization, mask):
    network = trained(normalization=normalization, **mask)
    served = fold_network(network)
    images = np.random.default_rng(2).integers(0, 256, (2, 40, 56, 1)).astype(np.float32)
    expected, found = network(images, training=False), served(images, training=False)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5)


def test_batch_normalisation_is_gone_and_others_stay():
    def normalizations(network):
        layers = [*network.segmentation.layers, *network.decision.layers]
        return [layer for layer in layers if layer.name.endswith("_norm")]

    assert normalizations(fold_network(trained(normalization="batch"))) == []
    assert normalizations(fold_network(trained(normalization="instance"))) != []


def test_trained_network_stays_as_it_was():
    network = trained()
    before = network.get_weights()
    fold_network(network)
    for one, other in zip(network.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_large_convolutions_may_run_by_fourier_transforms():
    assert fourier_layers(fold_network(trained())) == []
    wide = trained(segmentation_widths=((4,), (4,), (32,)), feature_width=64, feature_kernel=9)
    (layer,) = fourier_layers(fold_network(wide))
    assert (type(layer), layer.name) == (FourierConv2D, "features")
    assert isinstance(layer, keras.layers.Conv2D)
