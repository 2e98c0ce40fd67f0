"""Clipping after the reduction, and images taken in parts, change no number that they should not."""

import numpy as np
import pytest

from training.config import ExperimentConfig, StageConfig, StagesConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from segdec.network.network import build_network  # noqa: E402
from training.distribution.strategies import choose_strategy  # noqa: E402
from training.optimization.ema import WeightEMA  # noqa: E402
from training.optimization.gradients import clip, replica_gradients  # noqa: E402
from training.optimization.schedules import build_optimizer  # noqa: E402
from training.optimization.step import build_step  # noqa: E402
from training.optimization.train_state import TrainState  # noqa: E402
from training.stages import STAGES  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

BATCH, STEPS = 4, 2
JOINT = STAGES[-1]


def batches():
    random = np.random.default_rng(0)
    images = BATCH * STEPS
    examples = {
        "image": random.uniform(0, 255, (images, 16, 16, 1)).astype(np.float32),
        "target": random.uniform(0, 1, (images, 2, 2, 1)).astype(np.float32),
        "weight": random.uniform(0.5, 2, (images, 2, 2, 1)).astype(np.float32),
        "label": random.integers(0, 2, images).astype(np.int32),
    }
    return tf.data.Dataset.from_tensor_slices(examples).batch(BATCH)


def train(tiny_config, devices="cpu:1", **settings):
    """Weights after two joint steps, how far they moved, and the losses."""
    keras.utils.set_random_seed(1)
    strategy = choose_strategy("auto", devices)
    config = StageConfig(steps=STEPS, optimizer="sgd", learning_rate=0.1, momentum=0.0, **settings)
    with strategy.scope():
        network = build_network(tiny_config.network.model_copy(update={"normalization": "instance"}))
        steps_taken = tf.Variable(0, dtype=tf.int64)
        optimizer = build_optimizer(config, "joint", steps_taken)
        optimizer.build(JOINT.trainable_variables(network))
        ema = WeightEMA(network.variables, 0.5)
    start = [np.asarray(variable.value).copy() for variable in network.variables]
    state = TrainState(network, {"joint": optimizer}, ema, steps_taken)
    step = build_step(strategy, state, JOINT, ExperimentConfig(stages=StagesConfig(joint=config)))
    losses = [float(step(batch)["loss"]) for batch in strategy.experimental_distribute_dataset(batches())]
    weights = [np.asarray(variable.value) for variable in network.variables]
    return (
        weights,
        np.sqrt(sum(np.sum((new - old) ** 2) for new, old in zip(weights, start, strict=True))),
        losses,
    )


@pytest.fixture(scope="module")
def plain(tiny_config):
    return train(tiny_config)


@pytest.fixture(scope="module")
def clipped(tiny_config):
    return train(tiny_config, clip_norm=0.05)


def check_equal(weights, expected):
    for ours, theirs in zip(weights, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_clipping_bounds_the_step(plain, clipped):
    longest = STEPS * 0.1 * 0.05  # steps · learning rate · norm
    assert clipped[1] <= longest * 1.0001
    assert plain[1] > 2 * longest


@pytest.mark.slow
def test_clipped_mirrored_training_equals_one_device(tiny_config, clipped):
    weights, _, losses = train(tiny_config, "cpu:2", clip_norm=0.05)
    assert losses == pytest.approx(clipped[2], rel=1e-5)
    check_equal(weights, clipped[0])


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "parts"), [("cpu:1", 4), ("cpu:1", 3), ("cpu:2", 2)])
def test_images_in_parts_equal_the_batch(tiny_config, plain, devices, parts):
    """With statistics per image; three parts of four images are uneven."""
    weights, _, losses = train(tiny_config, devices, accumulate=parts)
    assert losses == pytest.approx(plain[2], rel=1e-5)
    check_equal(weights, plain[0])


@pytest.mark.slow
def test_parts_and_clipping_go_together(tiny_config, clipped):
    check_equal(train(tiny_config, accumulate=2, clip_norm=0.05)[0], clipped[0])


def test_clipping_by_hand():
    """Gradients 3 and 4 have norm 5; clipped to 1 they are 0.6 and 0.8."""
    first, second = tf.Variable(0.0), tf.Variable(0.0)

    def losses(part):
        return {"loss": tf.reduce_sum(part["label"] * (3.0 * first + 4.0 * second))}

    @tf.function
    def run(parts, clip_norm):
        batch = {"label": tf.constant([0.5, 0.5])}
        gradients, _ = replica_gradients(losses, [first, second], batch, parts=parts)
        return clip(gradients, tf.linalg.global_norm(gradients), clip_norm)

    for parts in (1, 2):
        np.testing.assert_allclose(run(parts, 1.0), [0.6, 0.8], rtol=1e-6)
        np.testing.assert_allclose(run(parts, 9.0), [3.0, 4.0], rtol=1e-6)


@pytest.mark.parametrize(("devices", "clip_norm"), [("cpu:1", None), ("cpu:2", 0.05)])
def test_a_step_reduces_once(tiny_config, monkeypatch, devices, clip_norm):
    """Gradients, losses, numbers of images and requests to stop go into one message."""
    reductions = []
    true = tf.distribute.ReplicaContext.all_reduce

    def count(context, operation, values, options=None):
        reductions.append(len(tf.nest.flatten(values)))
        return true(context, operation, values, options)

    monkeypatch.setattr(tf.distribute.ReplicaContext, "all_reduce", count)
    train(tiny_config, devices, clip_norm=clip_norm)
    replicas = int(devices.removeprefix("cpu:"))
    assert len(reductions) == replicas  # while the one graph of the step is traced
    assert min(reductions) > 10
