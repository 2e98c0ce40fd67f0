"""Training steps of a network with a pretrained encoder: variables that change, and variables that do not."""

import re

import numpy as np
import pytest

from segdec.config import NetworkConfig
from segdec.encoders import ENCODERS
from tests.marks import slow_case
from training.config import ExperimentConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from tests.training.optimization import single_stage  # noqa: E402
from tests.training.optimization.single_stage import Training, changed_paths  # noqa: E402
from training.optimization.flops import PASSES, count_flops, count_step_flops  # noqa: E402
from training.optimization.objective import stage_losses  # noqa: E402
from training.optimization.pretrained import build_initial_network, load_pretrained, mutable_variables  # noqa: E402
from training.stages import STAGES  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

SIDE = 32
BEHIND = 2
"""Blocks of MobileNet between its features of stride 8 and those of stride 16."""


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


@pytest.mark.parametrize("strategy", ["single", slow_case("mirrored")])  # others: test_equality
def test_frozen_encoder_stays_bit_identical(configure, strategy):
    """Weights and moving statistics, on every replica; decay, momentum and averages included."""
    training = Training(configure("frozen", optimizer="adamw", weight_decay=0.1), strategy)
    before = training.replica_weights()
    training.run(make_batches(2))
    moved = changed_paths(before, training.replica_weights())
    network = training.network
    parts = [*network.segmentation.variables, *network.decision.variables]
    expected = {variable.path for variable in parts} - encoder_paths(network)
    assert moved == expected


@pytest.mark.slow
def test_only_the_top_layers_of_an_encoder_are_trained(configure, tiny_encoder):
    """All layers of an encoder: see `test_equality`."""
    training = Training(configure("top", "segment"), "mirrored")
    before = training.replica_weights()
    training.run(make_batches(2))
    moved = changed_paths(before, training.replica_weights()) & encoder_paths(training.network)
    layers = training.network.backbone.layers
    names = [layer.name for layer in layers]
    layers = layers[names.index(ENCODERS[tiny_encoder].layers[8]) + 1 :]
    assert sum("_dw_" in layer.name and "bn" not in layer.name for layer in layers if layer.weights) == BEHIND
    expected = {variable.path for layer in layers for variable in layer.variables}
    assert moved == expected


@pytest.mark.slow
def test_encoder_has_its_own_learning_rate(configure):
    """Step and decay of an eighth of what they would be; of all that is not the encoder nothing changes."""
    batches, steps = make_batches(1), {}
    for factor in (1.0, 0.125):
        training = Training(configure("all", encoder_learning_rate=factor, weight_decay=0.5))
        before = training.weights()
        losses = training.run(batches)
        assert losses["learning_rate"] == pytest.approx(0.05)
        after = training.weights()
        steps[factor] = {
            variable.path: (after[variable.path] - before[variable.path]).astype(float)
            for variable in training.network.trainable_variables
        }
    of_encoder = encoder_paths(training.network)
    for path, step in steps[0.125].items():
        expected = steps[1.0][path] * (0.125 if path in of_encoder else 1.0)
        rounding = 2e-7 if path in of_encoder else 0.0
        np.testing.assert_allclose(step, expected, rtol=0, atol=rounding, err_msg=path)
    assert max(np.abs(steps[0.125][path]).max() for path in of_encoder & steps[1.0].keys()) > 1e-5


def is_gradient(operation):
    return operation.name.startswith("gradient_tape/")


@pytest.mark.parametrize(("trainable", "blocks"), [slow_case("frozen", 0), slow_case("top", BEHIND)])
def test_frozen_layers_have_no_gradient(configure, trainable, blocks):
    """Their activations are not stored for the backward pass either."""
    tensors = {name: tf.constant(values) for name, values in make_batches(1)[0].items()}
    graph = Training(configure(trainable, "segment")).step.get_concrete_function(tensors).graph
    operations = graph.get_operations()
    kinds = [operation.type for operation in operations]
    assert kinds.count("DepthwiseConv2dNativeBackpropFilter") == blocks
    assert kinds.count("DepthwiseConv2dNative") > BEHIND
    blocks_kept = {
        int(found[1])
        for operation in operations
        if is_gradient(operation)
        for tensor in operation.inputs
        if not is_gradient(tensor.op)
        and (found := re.search(r"backbone.*/conv_(?:dw|pw)_(\d+)", tensor.name))
    }
    assert blocks_kept <= set(range(5 + 1, 5 + 1 + blocks))
    assert bool(blocks_kept) == bool(blocks)


def test_frozen_layers_are_not_averaged(configure):
    """They are not in any other state of a step either: they cannot change."""
    training = Training(configure("frozen", "segment"))
    ours = {variable.path for variable in mutable_variables(training.network)}
    everything = {variable.path for variable in training.network.variables}
    assert ours
    assert ours == everything - encoder_paths(training.network)
    assert len(training.state.ema.shadows) == len(ours)


# === Features in place of images ===


@pytest.fixture(scope="module")
def encode(configure):
    """What makes a batch of features of a batch of images, rounded as they are kept or not."""
    config = configure("frozen")
    network = build_initial_network(config, load_pretrained(config))

    def encode(batch, dtype=np.float16):
        features = network.encoder(batch["image"], training=False)
        return {name: one.numpy().astype(dtype) for name, one in features.items()} | {
            name: values for name, values in batch.items() if name != "image"
        }

    return encode


def test_losses_on_features_equal_those_on_images(configure, encode):
    stage = STAGES[-1]
    config = configure("frozen", stage.name)
    keras.utils.set_random_seed(1)
    network = build_initial_network(config, load_pretrained(config))
    (batch,) = make_batches(1)
    images = stage_losses(network, stage, config, batch)
    exact = stage_losses(network, stage, config, encode(batch, np.float32))
    rounded = stage_losses(network, stage, config, encode(batch))
    for name, loss in images.items():
        np.testing.assert_allclose(exact[name], loss, rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(rounded[name], loss, rtol=5e-3, err_msg=name)


@pytest.mark.slow
def test_training_on_features_equals_training_on_images(configure, encode):
    """To the precision of the stored features."""
    batches = make_batches(3)
    ours, expected = Training(configure("frozen")), Training(configure("frozen"))
    ours.run(encode(batch) for batch in batches)
    expected.run(batches)
    theirs = expected.weights()
    for path, weights in ours.weights().items():
        np.testing.assert_allclose(weights, theirs[path], atol=1e-3, err_msg=path)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "images"), [("mirrored", 3), ("central-storage", 1)])
def test_features_are_split_over_replicas(configure, encode, strategy, images):
    """Also if a replica has no images: its features have zero rows."""
    config = configure("frozen", network={"normalization": "instance"})
    single, several = Training(config), Training(config, strategy)
    batches = [encode(batch) for batch in make_batches(2, images)]
    assert several.run(batches)["loss"] == pytest.approx(single.run(batches)["loss"], rel=1e-5)
    expected = single.weights()
    for path, weights in several.replica_weights().items():
        np.testing.assert_allclose(weights, np.broadcast_to(expected[path], weights.shape), atol=2e-6)


def test_a_step_on_features_does_not_count_the_encoder(configure):
    stage = STAGES[-1]
    config = configure("frozen", stage.name)
    network = build_initial_network(config, load_pretrained(config))
    shape = (4, SIDE, SIDE, 1)
    counted = count_step_flops(network, stage, shape, encoded=True)
    forward = count_flops(network.backbone, keras.KerasTensor((4, SIDE, SIDE, 3)))
    assert forward > 0
    assert count_step_flops(network, stage, shape) == counted + forward
    _, coarse, _ = network.segmentation.compute_output_spec(keras.KerasTensor(shape))
    encoded = network.encoder.compute_output_spec(keras.KerasTensor(shape))
    expected = count_flops(network.head, encoded) * (PASSES if stage.trains_segmentation else 1)
    if stage.trains_decision:
        volume = keras.KerasTensor((*coarse.shape[:3], network.config.feature_width))
        expected += PASSES * count_flops(network.decision, (volume, coarse))
    assert counted == expected
