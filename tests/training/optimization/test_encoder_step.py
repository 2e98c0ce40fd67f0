"""Training steps of a network with a pretrained encoder: variables that change, and variables that do not."""

import numpy as np
import pytest

from segdec.config import NetworkConfig
from segdec.encoders import ENCODERS
from training.config import ExperimentConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from tests.training.optimization import single_stage  # noqa: E402
from tests.training.optimization.single_stage import Training, changed_paths  # noqa: E402
from training.optimization.flops import count_flops, count_step_flops  # noqa: E402
from training.optimization.objective import stage_losses  # noqa: E402
from training.optimization.pretrained import build_initial_network, load_pretrained, mutable_variables  # noqa: E402
from training.stages import STAGES  # noqa: E402

SIDE = 32


@pytest.fixture(scope="module")
def configure(tiny_encoder, tiny_encoder_weights):
    """An experiment of plain gradient descent, so that a step can be followed by hand."""

    def configure(trainable, stage="joint", network=None, **settings):
        shape = {"encoder": tiny_encoder, "adapter_width": 8, "feature_width": 8, "feature_kernel": 3}
        descent = {"steps": 4, "optimizer": "sgd", "momentum": 0.0, "learning_rate": 0.05}
        rest = {key: settings.pop(key) for key in ("precision", "encoder_learning_rate") if key in settings}
        return ExperimentConfig(
            network=NetworkConfig(**shape, decision_widths=(4, 4), **(network or {})),
            encoder_weights=str(tiny_encoder_weights),
            encoder_trainable=trainable,
            stages={stage: descent | settings},
            batch_size=4,
            **rest,
        )

    return configure


def make_batches(count, images=4):
    return single_stage.make_batches(count, images, SIDE)


def encoder_paths(network):
    return {variable.path for variable in network.backbone.variables}


@pytest.mark.slow
def test_frozen_encoder_stays_bit_identical(configure):
    """Weights and moving statistics; decay, momentum and averages included.

    On several replicas: `test_features_are_split_over_replicas`.
    """
    training = Training(configure("frozen", optimizer="adamw", weight_decay=0.1))
    before = training.weights()
    training.run(make_batches(1))
    network = training.network
    parts = [*network.segmentation.variables, *network.decisions[0].variables]
    expected = {variable.path for variable in parts} - encoder_paths(network)
    assert changed_paths(before, training.weights()) == expected
    assert {variable.path for variable in mutable_variables(network)} == expected
    assert len(training.state.ema.shadows) == len(expected)


@pytest.mark.slow
def test_only_the_top_layers_of_an_encoder_are_trained(configure, tiny_encoder):
    """The activations of others are not stored for the backward pass. All layers: see `test_equality`."""
    training = Training(configure("top", "segment"))
    before = training.weights()
    (batch,) = make_batches(1)
    training.run([batch])
    layers = training.network.backbone.layers
    names = [layer.name for layer in layers]
    layers = layers[names.index(ENCODERS[tiny_encoder].layers[8]) + 1 :]
    expected = {variable.path for layer in layers for variable in layer.variables}
    assert changed_paths(before, training.weights()) & encoder_paths(training.network) == expected
    graph = training.step.get_concrete_function({name: tf.constant(one) for name, one in batch.items()}).graph
    kinds = [operation.type for operation in graph.get_operations()]
    trained = sum("_dw_" in layer.name and "bn" not in layer.name for layer in layers if layer.weights)
    assert kinds.count("DepthwiseConv2dNativeBackpropFilter") == trained == 1
    assert kinds.count("DepthwiseConv2dNative") > trained


@pytest.mark.slow
def test_encoder_has_its_own_learning_rate(configure):
    """Step and decay of an eighth of what they would be; of all that is not the encoder nothing changes."""
    batches, steps = make_batches(1), {}
    for factor in (1.0, 0.125):
        training = Training(configure("all", encoder_learning_rate=factor, weight_decay=0.5))
        before = training.weights()
        training.run(batches)
        after = training.weights()
        steps[factor] = {path: (after[path] - before[path]).astype(float) for path in after}
    moving = {variable.path for variable in training.network.non_trainable_variables}
    of_encoder = encoder_paths(training.network) - moving
    for path, step in steps[0.125].items():
        factor, rounding = (0.125, 2e-7) if path in of_encoder else (1.0, 0.0)
        np.testing.assert_allclose(step, steps[1.0][path] * factor, rtol=0, atol=rounding, err_msg=path)
    assert max(np.abs(steps[0.125][path]).max() for path in of_encoder) > 1e-5


# === Features in place of images ===


@pytest.fixture(scope="module")
def network(configure):
    keras.utils.set_random_seed(1)
    config = configure("frozen")
    return build_initial_network(config, load_pretrained(config))


def encode(network, batch, dtype=np.float16):
    """A batch of features of a batch of images, rounded as they are stored or not."""
    features = network.encoder(batch["image"], training=False)
    others = {name: values for name, values in batch.items() if name != "image"}
    return {**others, **{name: one.numpy().astype(dtype) for name, one in features.items()}}


def test_losses_on_features_equal_those_on_images(configure, network):
    config = configure("frozen")
    (batch,) = make_batches(1)
    images = stage_losses(network, STAGES[-1], config, batch)
    exact = stage_losses(network, STAGES[-1], config, encode(network, batch, np.float32))
    rounded = stage_losses(network, STAGES[-1], config, encode(network, batch))
    for name, loss in images.items():
        np.testing.assert_allclose(exact[name], loss, rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(rounded[name], loss, rtol=5e-3, err_msg=name)


@pytest.mark.slow
def test_features_are_split_over_replicas(configure, network):
    """Also if a replica has no images: its features have zero rows."""
    config = configure("frozen", network={"normalization": "instance"})
    single, several = Training(config), Training(config, "central-storage")
    batches = [encode(network, batch) for batch in make_batches(2, 1)]
    assert several.run(batches)["loss"] == pytest.approx(single.run(batches)["loss"], rel=1e-5)
    expected = single.weights()
    for path, weights in several.weights().items():
        np.testing.assert_allclose(weights, expected[path], atol=2e-6, err_msg=path)


def test_a_step_on_features_does_not_count_the_encoder(network):
    shape = (4, SIDE, SIDE, 1)
    counted = count_step_flops(network, STAGES[-1], shape, encoded=True)
    forward = count_flops(network.backbone, keras.KerasTensor((4, SIDE, SIDE, 3)))
    assert forward > 0
    assert count_step_flops(network, STAGES[-1], shape) == counted + forward
