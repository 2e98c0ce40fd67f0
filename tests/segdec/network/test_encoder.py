"""Encoders: their rows and the models built from them."""

import numpy as np
import pytest

from segdec.config import NetworkConfig
from segdec.encoders import ENCODER_STRIDE, ENCODERS, JOINED_STRIDES
from tests.marks import slow_case

keras = pytest.importorskip("keras")

from segdec.network.encoder import EncoderInput, build_encoder, load_application  # noqa: E402
from segdec.network.folding import fold_network  # noqa: E402
from segdec.network.layers import ReplicaBatchNormalization, all_layers  # noqa: E402
from segdec.network.network import build_network  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

ROWS = ["mobilenet", *(slow_case(name) for name in ENCODERS if name != "mobilenet")]
HEAD = {"adapter_width": 4, "feature_width": 4, "decision_widths": (4, 4, 4), "decoder_widths": (4, 4, 4)}


def config(encoder, **fields):
    return NetworkConfig(preset="mobilenet", encoder=encoder, **{**HEAD, **fields})


def noise(batch, height, width, channels=1):
    values = np.random.default_rng(0).integers(0, 256, (batch, height, width, channels))
    return values.astype(np.float32)


def copy_weights(application, encoder):
    origin = {layer.name: layer for layer in all_layers(application)}
    for layer in encoder.get_layer("backbone").layers:
        if layer.weights:
            layer.set_weights(origin[layer.name].get_weights())


def pretrained(encoder, weights, **fields):
    """The encoder's part of a network, with the weights in a file."""
    application = load_application(ENCODERS[encoder])
    application.load_weights(weights)
    part = build_encoder(config(encoder, **fields))
    copy_weights(application, part)
    return part, application


# === Rows ===


def features_by_hand(application, row, image, channels):
    """Maps of the strides, float64: what is joined at 1/8 of the image, from the application's own layers."""
    own = keras.Model(application.input, {s: application.get_layer(n).output for s, n in row.layers.items()})
    pixels = EncoderInput(row.mean, row.deviation, blue_first=row.blue_first)(image)
    found = {stride: np.asarray(one, np.float64) for stride, one in own(pixels, training=False).items()}
    assert image.shape[-1] == channels
    finest = found[4]
    halves = finest.reshape(1, finest.shape[1] // 2, 2, finest.shape[2] // 2, 2, -1).mean(axis=(2, 4))
    return found, {4: halves, 8: found[8], 16: found[16]}


def smoothed(features):
    """The mean over the existing pixels of 3 × 3 px."""
    rows, columns = features.shape[1:3]
    result = np.empty_like(features)
    for row, column in np.ndindex(rows, columns):
        about = features[:, max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
        result[:, row, column] = about.mean(axis=(1, 2))
    return result


@pytest.mark.parametrize("name", ROWS)
def test_features_are_those_of_the_application(name):
    """Of its own layers, under the names of the row, at an image that needs no padding."""
    keras.utils.set_random_seed(3)
    row, channels = ENCODERS[name], 3
    application, image = load_application(row), noise(1, 32, 48, channels)
    encoder = build_encoder(config(name, mask_stride=1, input_channels=channels))
    copy_weights(application, encoder)
    found = encoder(image, training=False)
    layers, joined = features_by_hand(application, row, image, channels)
    for stride in JOINED_STRIDES:
        check_close(found[f"joined_{stride}"], smoothed(joined[stride]))
    for stride in {2, 4} & layers.keys():
        check_close(found[f"skip_{stride}"], layers[stride])
    normalized = np.asarray(encoder.get_layer("pixels")(image))
    for stride in {1, 2} - layers.keys():
        blocks = normalized.reshape(1, 32 // stride, stride, 48 // stride, stride, 3)
        check_close(found[f"skip_{stride}"], blocks.mean(axis=(2, 4)))


def check_close(found, expected):
    """Equal except for rounding, relative to the largest expected value."""
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(np.abs(expected).max(), 1e-3))


@pytest.mark.parametrize("name", ROWS)
def test_pixel_scaling_matches_the_published_weights(name):
    """As Keras' own function has it, or the layers that it puts before the network."""
    row, image = ENCODERS[name], noise(1, 32, 32, 3)
    found = np.asarray(EncoderInput(row.mean, row.deviation, blue_first=row.blue_first)(image))
    if "include_preprocessing" in row.arguments:
        build = getattr(keras.applications, row.application)
        whole = build(
            include_top=False, weights=None, input_shape=(None, None, 3), include_preprocessing=True
        )
        places = [at for at, layer in enumerate(whole.layers) if isinstance(layer, PREPROCESSING)]
        expected = np.asarray(keras.Model(whole.input, whole.layers[places[-1]].output)(image))
    else:
        module = {"MobileNet": keras.applications.mobilenet, "ResNet50": keras.applications.resnet50}
        expected = module[row.application].preprocess_input(image.copy())
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


PREPROCESSING = (keras.layers.Rescaling, keras.layers.Normalization)


@pytest.mark.parametrize("name", ROWS)
def test_receptive_field_follows_from_the_layers(name):
    """Adds up the kernels at their strides, from the pixel on."""
    row = ENCODERS[name]
    application, known = load_application(row), {}

    def reach(operation):
        if operation.name not in known:
            known[operation.name] = further(operation)
        return known[operation.name]

    def further(operation):
        """Receptive field and stride, px; None of what is a mean of all."""
        if isinstance(operation, keras.layers.InputLayer):
            return 1, 1
        before = [reach(parent.operation) for parent in operation._inbound_nodes[0].parent_nodes]
        known_ones = [one for one in before if one]
        if isinstance(operation, keras.layers.GlobalAveragePooling2D) or not known_ones:
            return None
        side, stride = map(max, zip(*known_ones, strict=True))
        for layer in operation.layers if isinstance(operation, keras.Sequential) else [operation]:
            if kernel := getattr(layer, "kernel_size", getattr(layer, "pool_size", None)):
                side += (kernel[0] - 1) * stride
                stride *= layer.strides[0]
        return side, stride

    found = {stride: reach(application.get_layer(layer)) for stride, layer in row.layers.items()}
    assert {stride: one[1] for stride, one in found.items()} == {stride: stride for stride in row.layers}
    assert found[ENCODER_STRIDE][0] == row.receptive_field
    weighs = any(isinstance(one, keras.layers.GlobalAveragePooling2D) for one in application.layers)
    assert weighs is row.has_squeeze_excitation


# === Network ===


@pytest.mark.parametrize("name", ROWS)
def test_every_row_makes_a_network(name):
    network = build_network(config(name, mask_stride=1))
    found = network(noise(1, 24, 40))
    assert found["mask_logits"].shape == (1, 24, 40, 1)
    assert all(np.isfinite(one).all() for one in found.values())
    dropped = (keras.layers.Dropout, keras.Sequential)
    assert not [layer for layer in network.backbone.layers if isinstance(layer, dropped)]
    kinds = {type(one) for one in all_layers(network) if isinstance(one, keras.layers.BatchNormalization)}
    assert kinds == {ReplicaBatchNormalization}


def test_grey_is_copied_to_three_channels(tiny_encoder, tiny_encoder_weights):
    grey, _ = pretrained(tiny_encoder, tiny_encoder_weights)
    colour, _ = pretrained(tiny_encoder, tiny_encoder_weights, input_channels=3)
    image = noise(1, 40, 24)
    expected = colour(np.repeat(image, 3, axis=-1))
    for name, found in grey(image).items():
        np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["tiny", *(slow_case(name) for name in ENCODERS)])
def test_layer_names_are_reproducible(name, tiny_encoder):  # noqa: ARG001
    """Keras numbers layers without a name by process; checkpoints and folding look for names."""
    first, second = (build_network(config(name, mask_stride=1)) for _ in range(2))
    assert [layer.name for layer in all_layers(first)] == [layer.name for layer in all_layers(second)]
    served, again = fold_network(first), fold_network(second)
    assert [one.path for one in served.variables] == [one.path for one in again.variables]
