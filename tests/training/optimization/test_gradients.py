"""Clipping after the reduction, and images taken in parts, change no number that they should not."""

import numpy as np
import pytest

from training.config import ExperimentConfig, StageConfig, StagesConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from segdec.network.network import build_network  # noqa: E402
from tests.training.replicas import split_over_replicas  # noqa: E402
from training.distribution.strategies import choose_strategy  # noqa: E402
from training.optimization.ema import WeightEMA  # noqa: E402
from training.optimization.gradients import clip, replica_gradients, sum_over_replicas  # noqa: E402
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
    return [
        {name: values[first : first + BATCH] for name, values in examples.items()}
        for first in range(0, images, BATCH)
    ]


def train(tiny_config, devices="cpu:1", *, multi_process=False, **settings):
    """Weights after two joint steps, how far they moved, and the losses."""
    keras.utils.set_random_seed(1)
    strategy = choose_strategy("auto", devices)
    config = StageConfig(steps=STEPS, optimizer="sgd", learning_rate=0.1, momentum=0.0, **settings)
    with strategy.scope():
        network = build_network(tiny_config.network.model_copy(update={"normalization": "instance"}))
        steps_taken = tf.Variable(0, dtype=tf.int64)
        optimizer = build_optimizer(config, "joint", steps_taken)
        optimizer.build(JOINT.trainable_variables(network))
        ema = WeightEMA(network, 0.5)
    start = [np.asarray(variable.value).copy() for variable in network.variables]
    state = TrainState(network, {"joint": optimizer}, ema, steps_taken)
    experiment = ExperimentConfig(stages=StagesConfig(joint=config))
    step = build_step(strategy, state, JOINT, experiment, multi_process=multi_process)
    stop_requests = (tf.constant(0.0),) if multi_process else ()
    distributed = [split_over_replicas(strategy, batch) for batch in batches()]
    losses = [float(step(batch, *stop_requests)["loss"]) for batch in distributed]
    weights = [np.asarray(variable.value) for variable in network.variables]
    return (
        weights,
        np.sqrt(sum(np.sum((new - old) ** 2) for new, old in zip(weights, start, strict=True))),
        losses,
    )


@pytest.fixture(scope="module")
def clipped(tiny_config):
    return train(tiny_config, clip_norm=0.05)


def check_equal(weights, expected):
    for ours, theirs in zip(weights, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.slow
def test_clipping_bounds_the_step(clipped):
    longest = STEPS * 0.1 * 0.05  # steps · learning rate · norm
    assert 0.5 * longest < clipped[1] <= longest * 1.0001


@pytest.mark.slow
def test_clipped_mirrored_training_equals_one_device(tiny_config, clipped):
    weights, _, losses = train(tiny_config, "cpu:2", clip_norm=0.05)
    assert losses == pytest.approx(clipped[2], rel=1e-5)
    check_equal(weights, clipped[0])


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "parts"), [("cpu:1", 3), ("cpu:2", 2)])
def test_images_in_parts_equal_the_batch(tiny_config, clipped, devices, parts):
    """With statistics per image; three parts of four images are uneven."""
    weights, _, losses = train(tiny_config, devices, accumulate=parts, clip_norm=0.05)
    assert losses == pytest.approx(clipped[2], rel=1e-5)
    check_equal(weights, clipped[0])


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


def test_a_step_reduces_once(tiny_config, monkeypatch):
    """Gradients, losses, numbers of images and requests to stop go into one message."""
    messages = []

    def watch(name):
        true = getattr(tf.distribute.CrossDeviceOps, name)

        def count(self, operation, values, *rest, **options):
            messages.append(values)
            return true(self, operation, values, *rest, **options)

        monkeypatch.setattr(tf.distribute.CrossDeviceOps, name, count)

    watch("reduce")
    watch("batch_reduce")
    # With this on each replica the time to trace a step would grow with their square.
    monkeypatch.setattr(tf.distribute.ReplicaContext, "all_reduce", None)
    train(tiny_config, "cpu:2", multi_process=True, clip_norm=0.05)
    assert len(messages) == 1  # while the one graph of the step is traced
    assert len(messages[0]) > 10


@pytest.mark.parametrize("name", ["single", "mirrored", "central-storage"])
def test_replicas_add_up_what_they_have_and_what_they_share(name):
    strategy = choose_strategy(name, "cpu:1" if name == "single" else "cpu:2")
    replicas = strategy.num_replicas_in_sync

    @tf.function
    def run(shared):
        def add_up():
            place = tf.distribute.get_replica_context().replica_id_in_sync_group
            own = tf.cast(place, tf.float64) + tf.constant([1.0, 2.0], tf.float64)
            return sum_over_replicas([own, shared], {"own": tf.cast(place, tf.float32), "shared": shared})

        return strategy.run(add_up)

    gradients, numbers = run(tf.constant(0.5, tf.float64))
    expected = [[1.0, 2.0], 0.5, 0.0, 0.5] if replicas == 1 else [[3.0, 5.0], 1.0, 1.0, 1.0]
    for summed, value in zip([*gradients, *numbers.values()], expected, strict=True):
        copies = strategy.experimental_local_results(summed)
        assert len(copies) == replicas
        for copy in copies:
            np.testing.assert_array_equal(copy, value)
