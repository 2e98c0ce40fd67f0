"""Encoders: their rows and the models built from them."""

import inspect
from functools import cache

import numpy as np
import pytest

from segdec.config import NetworkConfig
from segdec.encoders import ENCODER_STRIDE, ENCODERS, JOINED_STRIDES
from tests.marks import slow_case

keras = pytest.importorskip("keras")

from segdec.network import encoder as encoders  # noqa: E402
from segdec.network.encoder import EncoderInput, build_encoder  # noqa: E402
from segdec.network.layers import ReplicaBatchNormalization, all_layers  # noqa: E402
from segdec.network.vision_transformer import SelfAttention  # noqa: E402

pytestmark = pytest.mark.usefixtures("tiny_encoder")

ROWS = ["tiny", *map(slow_case, ENCODERS)]


@cache
def application(name):
    keras.utils.set_random_seed(3)
    return encoders.load_application(ENCODERS[name])


def encoder(name, channels=1):
    config = NetworkConfig(preset="mobilenet", encoder=name, input_channels=channels, mask_stride=1)
    return build_encoder(config)


def noise(height, width, channels):
    return np.random.default_rng(0).integers(0, 256, (1, height, width, channels)).astype(np.float32)


# === Rows ===


def smoothed(features):
    """The mean over the existing pixels of 3 × 3 px."""
    rows, columns = features.shape[1:3]
    result = np.empty_like(features)
    for row, column in np.ndindex(rows, columns):
        about = features[:, max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
        result[:, row, column] = about.mean(axis=(1, 2))
    return result


def check_close(found, expected):
    """Equal except for rounding, relative to the largest expected value."""
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(np.abs(expected).max(), 1e-3))


@pytest.mark.parametrize("name", ROWS)
def test_features_are_those_of_the_application(name):
    """Of its own layers, under the names of the row, at an image that needs no padding."""
    row, whole, part, image = ENCODERS[name], application(name), encoder(name, 3), noise(32, 48, 3)
    kinds = {type(one) for one in all_layers(part) if isinstance(one, keras.layers.BatchNormalization)}
    assert kinds <= {ReplicaBatchNormalization}
    origin = {layer.name: layer for layer in all_layers(whole)}
    for layer in part.get_layer("backbone").layers:
        if layer.weights:
            layer.set_weights(origin[layer.name].get_weights())
    found = part(image, training=False)
    pixels = np.asarray(EncoderInput(row.mean, row.deviation, blue_first=row.blue_first)(image))
    own = keras.Model(whole.input, {s: whole.get_layer(layer).output for s, layer in row.layers.items()})
    features = {s: np.asarray(one, np.float64) for s, one in own(pixels, training=False).items()}
    halves = features[4].reshape(1, 4, 2, 6, 2, -1).mean(axis=(2, 4))
    joined = {4: halves, 8: features[8], 16: features[16]}
    for stride in JOINED_STRIDES:
        check_close(found[f"joined_{stride}"], smoothed(joined[stride]))
    for stride in {2, 4} & features.keys():
        check_close(found[f"skip_{stride}"], features[stride])
    for stride in {1, 2} - features.keys():
        blocks = pixels.reshape(1, 32 // stride, stride, 48 // stride, stride, 3)
        check_close(found[f"skip_{stride}"], blocks.mean(axis=(2, 4)))


@pytest.mark.parametrize("name", [one if one == "mobilenet" else slow_case(one) for one in ENCODERS])
def test_pixel_scaling_matches_the_published_weights(name):
    """As in Keras' function, the layers before the network, or the description of our own networks."""
    row, image = ENCODERS[name], noise(32, 32, 3)
    found = np.asarray(EncoderInput(row.mean, row.deviation, blue_first=row.blue_first)(image))
    if row.application == "EfficientNetLite":
        expected = (image - 127) / 128
    elif row.application == "VisionTransformer":
        expected = (image / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    elif "include_preprocessing" in row.arguments:
        build, shape = getattr(keras.applications, row.application), (None, None, 3)
        whole = build(include_top=False, weights=None, input_shape=shape, include_preprocessing=True)
        kinds = (keras.layers.Rescaling, keras.layers.Normalization)
        last = [layer for layer in whole.layers if isinstance(layer, kinds)][-1]
        expected = np.asarray(keras.Model(whole.input, last.output)(image))
    else:
        module = inspect.getmodule(getattr(keras.applications, row.application))
        expected = module.preprocess_input(image.copy())
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", ROWS)
def test_receptive_field_follows_from_the_layers(name):
    """Adds up the kernels at their strides, from the pixel on."""
    row, whole = ENCODERS[name], application(name)

    @cache
    def reach(operation):
        """Receptive field and stride, px; None of what is a mean of all."""
        if isinstance(operation, keras.layers.InputLayer):
            return 1, 1
        before = [reach(parent.operation) for parent in operation._inbound_nodes[0].parent_nodes]
        known = [one for one in before if one]
        if isinstance(operation, keras.layers.GlobalAveragePooling2D) or not known:
            return None
        side, stride = map(max, zip(*known, strict=True))
        for layer in operation.layers if isinstance(operation, keras.Sequential) else [operation]:
            if kernel := getattr(layer, "kernel_size", getattr(layer, "pool_size", None)):
                side += (kernel[0] - 1) * stride
                stride *= layer.strides[0]
            stride //= getattr(layer, "factor", 1)
        return side, stride

    found = {stride: reach(whole.get_layer(layer)) for stride, layer in row.layers.items()}
    assert {stride: one[1] for stride, one in found.items()} == {stride: stride for stride in row.layers}
    assert found[ENCODER_STRIDE][0] == row.receptive_field
    kinds = (keras.layers.GlobalAveragePooling2D, SelfAttention)
    assert any(isinstance(one, kinds) for one in whole.layers) is row.has_global_context


def test_layer_names_are_reproducible():
    """Keras numbers layers without a name by process; checkpoints and folding look for names.

    Layers with weights have the names of the application, see above.
    """
    first, second = ([layer.name for layer in all_layers(encoder("tiny"))] for _ in range(2))
    assert first == second


def test_grey_is_copied_to_three_channels():
    row, image = ENCODERS["resnet50"], noise(40, 24, 1)
    layer = EncoderInput(row.mean, row.deviation, blue_first=row.blue_first)
    np.testing.assert_array_equal(layer(image), layer(np.repeat(image, 3, axis=-1)))
