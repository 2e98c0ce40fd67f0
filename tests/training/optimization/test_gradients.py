"""Gradients of parts, clipping, and the reduction over replicas."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from tests.training.optimization.single_stage import Training, make_batches, stage_config  # noqa: E402
from training.distribution.strategies import choose_strategy  # noqa: E402
from training.optimization.gradients import clip, replica_gradients, sum_over_replicas  # noqa: E402


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

    np.testing.assert_allclose(run(1, 9.0), [3.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(run(2, 1.0), [0.6, 0.8], rtol=1e-6)


@pytest.mark.slow
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
    config = tiny_config.network.model_copy(update={"normalization": "instance"})
    Training(stage_config(config, "joint", clip_norm=0.05), "mirrored", multi_process=True).run(
        make_batches(2), tf.constant(0.0)
    )
    assert len(messages) == 1  # while the one graph of the step is traced
    assert len(messages[0]) > 10


@pytest.mark.parametrize("name", ["single", "mirrored", "central-storage"])
def test_gradients_and_numbers_are_summed_over_replicas(name):
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
