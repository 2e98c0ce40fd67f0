import numpy as np
import pytest

from segdec.config import NetworkConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from segdec.network.layers import ComputePolicy  # noqa: E402
from segdec.network.network import build_decision, build_network  # noqa: E402
from tests.marks import slow_case  # noqa: E402

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
        slow_case("jim2019", 15_662_877 + 67),
        # Published 15,637,213 counts the mask head's switched-off offset: − 1; a second column: + 67.
        slow_case("comind2021", 15_637_213 - 1 + 67),
    ],
)
def test_parameter_counts(preset, weights):
    network = build_network(NetworkConfig(preset=preset))
    assert sum(int(np.prod(variable.shape)) for variable in network.trainable_variables) == weights


@pytest.mark.parametrize("gate", [True, False])
def test_gradient_gate(gate):
    network = build_network(NetworkConfig(**TINY, gradient_gate=gate))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(network(make_images(2, 16, 16), training=True)["class_logits"] ** 2)
    parts = (network.segmentation, *network.decisions)
    weights = [[variable.value for variable in part.trainable_variables] for part in parts]
    segmentation, decision = tape.gradient(loss, weights)
    assert all(gradient is not None for gradient in decision)
    assert all(gradient is None for gradient in segmentation) is gate


@pytest.mark.parametrize(
    ("classes", "weights", "activation", "even", "others"),
    [(2, [-2.0, 2.0], "sigmoid", 0.5, True), (3, [4.0, 0.0, 0.0], "linear", 0.0, False)],
)
def test_the_mask_prior_makes_the_first_decision(classes, weights, activation, even, others):
    config = NetworkConfig(**TINY, num_classes=classes, mask_activation=activation, mask_prior=2.0)
    kernel, bias = build_decision(config).get_layer("class_logits").get_weights()
    plain = build_decision(config.model_copy(update={"mask_prior": 0.0})).get_layer("class_logits")
    np.testing.assert_array_equal(kernel[-1], weights)
    np.testing.assert_array_equal(bias, -even * kernel[-1])
    assert np.abs(kernel[:-1]).max() < 1.0
    assert (len(np.unique(kernel[:-1])) > kernel[:-1].size // 2) is others
    assert kernel[:-1].any() == others
    assert not plain.get_weights()[1].any()


def test_network_contract(tmp_path):
    """Config round trip, save and load, wrong input; training has tests of its own."""
    network = build_network(NetworkConfig(**TINY, normalization="feature", mask_normalization="scale"))
    images = make_images(2, 16, 24)
    network.save(tmp_path / "network.keras")
    loaded = keras.models.load_model(tmp_path / "network.keras")
    assert loaded.config == network.config
    for name, output in network(images).items():
        np.testing.assert_array_equal(loaded(images)[name], output)
    with pytest.raises(ValueError, match=r"height=60, width=64.*divisible by 8.*padding to \(64, 64\)"):
        network(make_images(1, 60, 64))


@pytest.mark.parametrize(
    ("normalization", "precision"),
    [("batch", "mixed_bfloat16"), ("instance", "mixed_float16"), ("feature", "mixed_float16")],
)
def test_half_precision_keeps_weights_and_logits_in_float32(normalization, precision):
    config = NetworkConfig(**TINY, normalization=normalization, mask_normalization="affine")
    network = build_network(config, ComputePolicy(precision))
    outputs = network(make_images(1, 16, 16), training=True)
    assert {output.dtype for output in outputs.values()} == {tf.float32}
    assert {variable.dtype for variable in network.variables} == {"float32"}
    half = precision.removeprefix("mixed_")
    parts = (network.segmentation, *network.decisions)
    kernels = [layer for part in parts for layer in part.layers if isinstance(layer, keras.layers.Conv2D)]
    assert {layer.compute_dtype for layer in kernels if "mask" not in layer.name} == {half}
