import numpy as np
import pytest

from segdec.config import PRESETS, NetworkConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from segdec.network.layers import ComputePolicy  # noqa: E402
from segdec.network.network import SegDecNet, build_network, check_input_shape  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

TINY = {
    "segmentation_widths": ((4,), (4,), (4,)),
    "feature_width": 6,
    "feature_kernel": 3,
    "decision_widths": (4, 4, 4),
}


def make_images(batch, height, width, channels=1):
    return np.random.default_rng(0).uniform(0, 255, (batch, height, width, channels)).astype(np.float32)


@pytest.mark.parametrize(
    ("preset", "weights"),
    [
        # Convolutions 15,658,600 + mask head 1,024 + 1 + normalisation 2 · 1,592 + decision 66 · 2 + 2.
        ("seed", 15_658_600 + 1_025 + 3_184 + 134),
        # Published 15,662,877 with one output logit; the class softmax has a second column: + 66 + 1.
        ("jim2019", 15_662_877 + 67),
        # Published 15,637,213 counts the mask head's switched-off offset: − 1; a second column: + 67.
        ("comind2021", 15_637_213 - 1 + 67),
    ],
)
def test_parameter_counts(preset, weights):
    network = build_network(NetworkConfig(preset=preset))
    assert sum(int(np.prod(variable.shape)) for variable in network.trainable_variables) == weights


def test_layer_shapes_of_the_published_table():
    network = build_network(NetworkConfig())
    expected = {
        "segmentation_1_2": (1408, 512, 32),
        "segmentation_1_pool": (704, 256, 32),
        "segmentation_2_3": (704, 256, 64),
        "segmentation_3_4": (352, 128, 64),
        "features": (176, 64, 1024),
        "mask_logits": (176, 64, 1),
    }
    assert shapes(network.segmentation, (1408, 512, 1), expected) == expected
    expected = {
        "volume": (176, 64, 1025),
        "decision_1": (88, 32, 8),
        "decision_2": (44, 16, 16),
        "decision_3": (22, 8, 32),
        "vector": (66,),
        "class_logits": (2,),
    }
    assert shapes(network.decision, ((176, 64, 1024), (176, 64, 1)), expected) == expected


def shapes(part, inputs, names):
    """Output shapes of the named layers, without the batch, for an input of a given size."""
    probe = keras.Model(part.input, {name: part.get_layer(name).output for name in names})
    nested = isinstance(inputs[0], tuple)
    symbols = (
        tuple(keras.KerasTensor((1, *shape)) for shape in inputs)
        if nested
        else keras.KerasTensor((1, *inputs))
    )
    return {name: tuple(output.shape)[1:] for name, output in probe(symbols).items()}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("height", "width"), [(8, 8), (24, 40), (64, 16)])
def test_any_size_divisible_by_8(preset, height, width):
    network = build_network(NetworkConfig(preset=preset, **TINY, input_channels=3, num_classes=4))
    outputs = network(make_images(2, height, width, 3))
    assert outputs["mask_logits"].shape == (2, height // 8, width // 8, 1)
    assert outputs["class_logits"].shape == (2, 4)
    assert all(np.isfinite(output).all() for output in outputs.values())


def test_wrong_sides_name_the_padded_size():
    with pytest.raises(ValueError, match=r"height=60, width=64.*divisible by 8.*padding to \(64, 64\)"):
        build_network(NetworkConfig(**TINY))(make_images(1, 60, 64))


@pytest.mark.parametrize("shape", [(8, 8, 1), (1, 8, 8, 3), (1, 8, 8)])
def test_wrong_rank_or_channels(shape):
    with pytest.raises(ValueError, match=r"Expected \[B, H, W, 1\]"):
        check_input_shape(shape, channels=1)


def test_unknown_sides_pass():
    check_input_shape((None, None, 16, 1), channels=1)


@pytest.mark.parametrize("gate", [True, False])
def test_gradient_gate(gate):
    network = build_network(NetworkConfig(**TINY, gradient_gate=gate))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(network(make_images(2, 16, 16), training=True)["class_logits"] ** 2)
    segmentation = [variable.value for variable in network.segmentation.trainable_variables]
    decision = [variable.value for variable in network.decision.trainable_variables]
    gradients = tape.gradient(loss, segmentation + decision)
    assert all(gradient is not None for gradient in gradients[len(segmentation) :])
    reached = [gradient for gradient in gradients[: len(segmentation)] if gradient is not None]
    assert (len(reached) == 0) is gate


@pytest.mark.parametrize(
    ("activation", "expected"), [("sigmoid", 0.119203), ("relu", 0.0), ("linear", -2.0)]
)  # of the logit −2
def test_mask_activation(activation, expected):
    network = build_network(NetworkConfig(**TINY, mask_activation=activation))
    mask = network.decision.get_layer("mask")(np.full((1, 2, 2, 1), -2.0, np.float32))
    np.testing.assert_allclose(mask, expected, atol=1e-6)


@pytest.mark.parametrize(("activation", "even", "others"), [("sigmoid", 0.5, True), ("linear", 0.0, False)])
def test_the_mask_prior_makes_the_first_decision(activation, even, others):
    config = NetworkConfig(**TINY, num_classes=3, mask_activation=activation, mask_prior=2.0)
    kernel, bias = build_network(config).decision.get_layer("class_logits").get_weights()
    plain = build_network(config.model_copy(update={"mask_prior": 0.0})).decision.get_layer("class_logits")
    np.testing.assert_array_equal(kernel[-1], [-2.0, 2.0, 2.0])
    np.testing.assert_array_equal(bias, -even * kernel[-1])
    assert np.abs(kernel[:-1]).max() < 1.0
    assert (len(np.unique(kernel[:-1])) > kernel[:-1].size // 2) is others
    assert kernel[:-1].any() == others
    assert not plain.get_weights()[1].any()


def test_pixel_values_are_scaled_to_one():
    network = build_network(NetworkConfig(**TINY))
    assert float(network.segmentation.get_layer("scale")(np.array([255.0], np.float32))[0]) == pytest.approx(
        1.0
    )


def test_network_contract(tmp_path):
    """Config round trip, one fit step, save and load."""
    network = build_network(NetworkConfig(**TINY, normalization="feature", mask_normalization="scale"))
    again = SegDecNet.from_config(network.get_config())
    assert again.config == network.config
    images = make_images(2, 16, 24)
    network.compile(optimizer="sgd", loss={"mask_logits": "mse", "class_logits": "mse"})
    before = network.get_weights()
    network.train_on_batch(images, {"mask_logits": np.ones((2, 2, 3, 1)), "class_logits": np.ones((2, 2))})
    assert any((old != new).any() for old, new in zip(before, network.get_weights(), strict=True))
    network.save(tmp_path / "network.keras")
    loaded = keras.models.load_model(tmp_path / "network.keras")
    for name, output in network(images).items():
        np.testing.assert_array_equal(loaded(images)[name], output)


@pytest.mark.parametrize("precision", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("normalization", ["batch", "instance", "feature"])
def test_half_precision_keeps_weights_and_logits_in_float32(precision, normalization):
    config = NetworkConfig(**TINY, normalization=normalization, mask_normalization="affine")
    policy = keras.config.dtype_policy().name
    network = build_network(config, ComputePolicy(precision))
    assert keras.config.dtype_policy().name == policy
    outputs = network(make_images(1, 16, 16), training=True)
    assert {output.dtype for output in outputs.values()} == {tf.float32}
    assert {variable.dtype for variable in network.variables} == {"float32"}
    half = precision.removeprefix("mixed_")
    parts = (network.segmentation, network.decision)
    kernels = [layer for part in parts for layer in part.layers if isinstance(layer, keras.layers.Conv2D)]
    assert {layer.compute_dtype for layer in kernels if "mask" not in layer.name} == {half}


def test_how_it_was_trained_is_no_part_of_a_network(tmp_path):
    """Weights and configuration of one that was trained in other ways are those of a plain one."""
    trained = build_network(NetworkConfig(**TINY), ComputePolicy("mixed_float16", synchronized=True))
    plain = SegDecNet.from_config(trained.get_config())
    trained.save_weights(tmp_path / "network.weights.h5")
    plain.load_weights(tmp_path / "network.weights.h5")
    for ours, theirs in zip(plain.variables, trained.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert {layer.compute_dtype for layer in plain.segmentation.layers} == {"float32"}
    assert plain.get_config() == trained.get_config()
