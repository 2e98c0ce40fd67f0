import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras

from segdec.network import fourier_convolution
from segdec.network.fourier import kernel_spectra
from segdec.network.fourier_convolution import FourierConv2D, fourier_transforms

RANDOM = np.random.default_rng(7)


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def convolution(kernel, channels=3, filters=4, **options):
    layer = FourierConv2D(filters, kernel, padding="same", bias_initializer="normal", **options)
    layer.build((None, None, None, channels))
    return layer


def by_fourier(layer, images, bounded=True):
    spectra = kernel_spectra(np.asarray(layer.kernel))
    with fourier_transforms({layer.name: spectra}, bounded=bounded):
        return np.asarray(layer(images))


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    ("side", "channels", "filters", "shape"),
    [(1, 1, 2, (2, 1, 1)), (3, 2, 1, (1, 7, 40)), (7, 3, 3, (3, 5, 6)), (15, 1, 3, (1, 40, 17))],
)
def test_equals_the_direct_convolution(side, channels, filters, shape, bounded):
    layer, images = convolution(side, channels, filters), normal(*shape, channels)
    np.testing.assert_allclose(by_fourier(layer, images, bounded), layer(images), rtol=0, atol=1e-5)


def test_weights_and_answers_are_those_of_a_plain_convolution():
    layer, images = convolution(5, filters=128, activation="relu"), normal(2, 20, 30, 3)  # two channel groups
    plain = keras.layers.Conv2D(128, 5, padding="same", activation="relu")
    plain.build((None, None, None, 3))
    plain.set_weights(layer.get_weights())
    np.testing.assert_allclose(by_fourier(layer, images), plain(images), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("batch", "rows"), [(1, 4), (2, 2), (9, 1)])
def test_number_of_tiles_is_bounded(monkeypatch, batch, rows):
    monkeypatch.setattr(fourier_convolution, "TILES_PER_PX", 6)
    held, convolve = [], fourier_convolution._convolve

    def watch(image, spectra, by, rows, columns):
        held.append((rows, columns))
        return convolve(image, spectra, by, rows, columns)

    monkeypatch.setattr(fourier_convolution, "_convolve", watch)
    by_fourier(convolution(3), normal(batch, 40, 22, 3))  # 7 × 4 tiles that keep 6 × 6 px; 18 are allowed
    assert {(int(one), int(other)) for one, other in held} == {(rows, 4)}
