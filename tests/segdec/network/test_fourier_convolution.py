import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("tensorflow")

import keras
import tensorflow as tf

from segdec.network import fourier_convolution
from segdec.network.fourier_convolution import FourierConv2D, fourier_transforms

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

RANDOM = np.random.default_rng(7)


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def convolution(kernel, channels=3, filters=4, **options):
    layer = FourierConv2D(filters, kernel, padding="same", bias_initializer="normal", **options)
    layer.build((None, None, None, channels))
    return layer


def by_fourier(layer, images, **options):
    with fourier_transforms(**options):
        return np.asarray(layer(images))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    side=st.sampled_from([1, 3, 5, 7, 9, 15]),
    batch=st.integers(1, 3),
    height=st.integers(1, 50),
    width=st.integers(1, 50),
    channels=st.integers(1, 3),
    filters=st.integers(1, 3),
)
def test_equals_the_direct_convolution(side, batch, height, width, channels, filters):
    layer, images = convolution(side, channels, filters), normal(batch, height, width, channels)
    np.testing.assert_allclose(by_fourier(layer, images), np.asarray(layer(images)), rtol=0, atol=1e-5)


def test_weights_and_answers_are_those_of_a_plain_convolution():
    layer, images = convolution(5, activation="relu"), normal(2, 20, 30, 3)
    plain = keras.layers.Conv2D(4, 5, padding="same", activation="relu")
    plain.build((None, None, None, 3))
    plain.set_weights(layer.get_weights())
    np.testing.assert_allclose(by_fourier(layer, images), plain(images), rtol=0, atol=1e-5)
    again = FourierConv2D.from_config(layer.get_config())
    again.build((None, None, None, 3))
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(images), layer(images))


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


@pytest.mark.parametrize("bounded", [True, False])
def test_gradients_are_those_of_the_direct_convolution(bounded):
    layer, images, seen = convolution(5), tf.constant(normal(2, 13, 18, 3)), normal(2, 13, 18, 4)

    def gradients():
        with tf.GradientTape() as tape:
            tape.watch(images)
            loss = tf.reduce_sum(layer(images) * seen)
        return tape.gradient(loss, [images, *(weight.value for weight in layer.trainable_variables)])

    direct = gradients()
    with fourier_transforms(bounded=bounded):
        found = gradients()
    for one, other in zip(found, direct, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 4},
        {"kernel_size": (3, 5)},
        {"kernel_size": 3, "strides": 2},
        {"kernel_size": 3, "groups": 2},
    ],
)
def test_other_convolutions_are_rejected(options):
    with pytest.raises(ValueError, match="Expected a square kernel of odd size"):
        FourierConv2D(4, padding="same", **options)
    with pytest.raises(ValueError, match="Expected padding 'same'"):
        FourierConv2D(4, 3, padding="valid")
