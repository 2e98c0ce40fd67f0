"""What a step does to a network that stands on a pretrained encoder, and what it leaves alone."""

import re

import numpy as np
import pytest

from segdec.config import NetworkConfig
from segdec.encoders import ENCODERS
from tests.marks import slow_case
from training.config import ExperimentConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from tests.training.replicas import split_over_replicas  # noqa: E402
from training.distribution.strategies import choose_strategy  # noqa: E402
from training.optimization.flops import PASSES, count_flops, count_step_flops  # noqa: E402
from training.optimization.objective import stage_losses  # noqa: E402
from training.optimization.pretrained import build_initial_network, load_pretrained, mutable_variables  # noqa: E402
from training.optimization.step import build_step  # noqa: E402
from training.optimization.train_state import build_train_state  # noqa: E402
from training.stages import STAGES  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

SIDE = 32
STAGE_NAMES = [stage.name for stage in STAGES]
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


def make_batch(seed=0, images=4):
    random = np.random.default_rng(seed)
    return {
        "image": random.uniform(0, 255, (images, SIDE, SIDE, 1)).astype(np.float32),
        "target": random.uniform(0, 1, (images, SIDE // 8, SIDE // 8, 1)).astype(np.float32),
        "weight": np.ones((images, SIDE // 8, SIDE // 8, 1), np.float32),
        "label": random.integers(0, 2, images).astype(np.int32),
    }


class Training:
    """One stage of an experiment under a strategy."""

    def __init__(self, config, strategy="single"):
        keras.utils.set_random_seed(1)
        (name,) = (name for name in STAGE_NAMES if config.stages[name].steps)
        self.stage = STAGES[STAGE_NAMES.index(name)]
        self.strategy = choose_strategy(strategy, f"cpu:{1 if strategy == 'single' else 2}")
        pretrained = load_pretrained(config)
        with self.strategy.scope():
            self.state = build_train_state(config, pretrained)
        self.network = self.state.network
        self.step = build_step(self.strategy, self.state, self.stage, config)

    def run(self, *batches):
        for batch in batches:
            losses = self.step(split_over_replicas(self.strategy, batch))
        return {name: float(loss) for name, loss in losses.items()}

    def weights(self):
        """Of each replica, by the path of the variable."""
        copies = self.strategy.experimental_local_results
        return {
            variable.path: np.stack([np.asarray(copy) for copy in copies(variable.value)])
            for variable in self.network.variables
        }

    def encoder_paths(self):
        return {variable.path for variable in self.network.backbone.variables}


def changed(before, after):
    return {path for path in before if (before[path] != after[path]).any()}


@pytest.mark.parametrize(
    ("strategy", "stage"),
    [("single", "joint"), slow_case("mirrored", "joint")],  # others: test_equality
)
def test_a_frozen_encoder_stays_to_the_bit(configure, strategy, stage):
    """Weights, moving statistics, on every replica; decay, momentum and averages included."""
    settings = {"optimizer": "adamw", "weight_decay": 0.1}
    training = Training(configure("frozen", stage, **settings), strategy)
    before = training.weights()
    training.run(make_batch(0), make_batch(1))
    moved = changed(before, training.weights())
    parts = {"segment": {"segmentation"}, "decision": {"decision"}, "joint": {"segmentation", "decision"}}
    expected = {
        variable.path
        for part in parts[stage]
        for variable in getattr(training.network, part).variables
        if variable.path not in training.encoder_paths()
    }
    assert moved == expected


def layers_behind_stride_8(network, encoder):
    names = [layer.name for layer in network.backbone.layers]
    return network.backbone.layers[names.index(ENCODERS[encoder].layers[8]) + 1 :]


@pytest.mark.parametrize(
    ("strategy", "trainable"), [slow_case("single", "top"), slow_case("mirrored", "top")]
)
def test_the_configured_layers_of_an_encoder_are_trained(configure, tiny_encoder, strategy, trainable):
    """All of one on several devices: see `test_equality`."""
    training = Training(configure(trainable, "segment"), strategy)
    before = training.weights()
    training.run(make_batch(0), make_batch(1))
    moved = changed(before, training.weights()) & training.encoder_paths()
    layers = training.network.backbone.layers
    if trainable == "top":
        layers = layers_behind_stride_8(training.network, tiny_encoder)
        assert (
            sum("_dw_" in layer.name and "bn" not in layer.name for layer in layers if layer.weights)
            == BEHIND
        )
    expected = {variable.path for layer in layers for variable in layer.variables}
    assert moved == expected


@pytest.mark.slow
def test_the_encoder_moves_by_its_own_rate(configure):
    """Step and decay of an eighth of what they would be; of all that is not the encoder nothing changes."""
    batch, steps = make_batch(), {}
    for factor in (1.0, 0.125):
        training = Training(configure("all", encoder_learning_rate=factor, weight_decay=0.5))
        before = training.weights()
        losses = training.run(batch)
        assert losses["learning_rate"] == pytest.approx(0.05)
        after = training.weights()
        steps[factor] = {
            variable.path: (after[variable.path] - before[variable.path]).astype(float)
            for variable in training.network.trainable_variables
        }
    of_encoder = training.encoder_paths()
    for path, step in steps[0.125].items():
        expected = steps[1.0][path] * (0.125 if path in of_encoder else 1.0)
        rounding = 2e-7 if path in of_encoder else 0.0
        np.testing.assert_allclose(step, expected, rtol=0, atol=rounding, err_msg=path)
    assert max(np.abs(steps[0.125][path]).max() for path in of_encoder & steps[1.0].keys()) > 1e-5


def graph_of(config, batch):
    training = Training(config)
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    return training.step.get_concrete_function(tensors).graph.get_operations()


def is_gradient(operation):
    return operation.name.startswith("gradient_tape/")


@pytest.mark.parametrize(("trainable", "blocks"), [slow_case("frozen", 0), slow_case("top", BEHIND)])
def test_frozen_layers_have_no_gradient(configure, trainable, blocks):
    """Nor are their activations stored for the backward pass."""
    operations = graph_of(configure(trainable, "segment"), make_batch())
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
    """Nor is it anything else that a step touches: it cannot have changed."""
    training = Training(configure("frozen", "segment"))
    ours = {variable.path for variable in mutable_variables(training.network)}
    everything = {variable.path for variable in training.network.variables}
    assert ours
    assert ours == everything - training.encoder_paths()
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


def test_losses_of_features_are_those_of_the_images(configure, encode):
    stage = STAGES[-1]
    config = configure("frozen", stage.name)
    keras.utils.set_random_seed(1)
    network = build_initial_network(config, load_pretrained(config))
    images = stage_losses(network, stage, config, make_batch())
    exact = stage_losses(network, stage, config, encode(make_batch(), np.float32))
    rounded = stage_losses(network, stage, config, encode(make_batch()))
    for name, loss in images.items():
        np.testing.assert_allclose(exact[name], loss, rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(rounded[name], loss, rtol=5e-3, err_msg=name)


def check_near(ours, theirs, tolerance):
    for path, weights in ours.weights().items():
        np.testing.assert_allclose(weights, theirs.weights()[path], atol=tolerance, err_msg=path)


@pytest.mark.slow
def test_training_on_features_is_training_on_images(configure, encode):
    """To the digits that are kept of a feature."""
    batches = [make_batch(seed) for seed in range(3)]
    ours, expected = Training(configure("frozen")), Training(configure("frozen"))
    ours.run(*(encode(batch) for batch in batches))
    expected.run(*batches)
    check_near(ours, expected, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "images"), [("mirrored", 3), ("central-storage", 1)])
def test_replicas_share_features_as_they_share_images(configure, encode, strategy, images):
    """Also where one of them has none: it is given features of nothing, which do not count."""
    config = configure("frozen", network={"normalization": "instance"})
    single, several = Training(config), Training(config, strategy)
    batches = [encode(make_batch(seed, images)) for seed in range(2)]
    assert several.run(*batches)["loss"] == pytest.approx(single.run(*batches)["loss"], rel=1e-5)
    expected = single.weights()
    for path, weights in several.weights().items():
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
