"""Adam by one kernel a variable, against the paper; its state is that of Keras."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from training.optimization.fused_adam import FusedAdam  # noqa: E402

START = {"kernel": [[1.0, -2.0], [0.5, 3.0]], "bias": [0.1, 0.0]}
RATE, STEPS = 2.0**-7, 5  # a rate that float32 holds


def gradients(step):
    random = np.random.default_rng(step)
    return [random.normal(size=np.shape(value)) for value in START.values()]


def by_the_paper():
    """Algorithm 1, with the rate of the remark in section 2: epsilon beside the uncorrected root."""
    values = [np.array(value) for value in START.values()]
    first, second = ([np.zeros_like(value) for value in values] for _ in range(2))
    for step in range(STEPS):
        rate = RATE * np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        for index, gradient in enumerate(gradients(step)):
            first[index] += 0.1 * (gradient - first[index])
            second[index] += 0.001 * (gradient**2 - second[index])
            values[index] -= rate * first[index] / (np.sqrt(second[index]) + 1e-7)
    return values


def make(optimizer_class):
    variables = [keras.Variable(value, dtype="float64", name=name) for name, value in START.items()]
    optimizer = optimizer_class(RATE)
    optimizer.build(variables)
    return variables, optimizer


def take_steps(optimizer, variables):
    for step in range(STEPS):
        optimizer.apply([tf.constant(one) for one in gradients(step)], variables)


@pytest.mark.parametrize("wrap", [lambda take: take, tf.function], ids=["eagerly", "in one graph"])
def test_steps_are_those_of_the_paper(wrap):
    """The second step of a graph has other powers than the first."""
    variables, optimizer = make(FusedAdam)
    wrap(lambda: take_steps(optimizer, variables))()
    for ours, theirs in zip(variables, by_the_paper(), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12)


def test_a_checkpoint_of_keras_adam_is_resumed(tmp_path):
    variables, optimizer = make(keras.optimizers.Adam)
    take_steps(optimizer, variables)
    path = tf.train.Checkpoint(optimizer=optimizer).write(str(tmp_path / "adam"))
    _, other = make(FusedAdam)
    tf.train.Checkpoint(optimizer=other).read(path).assert_consumed()
    for one, same in zip(optimizer.variables, other.variables, strict=True):
        np.testing.assert_array_equal(one.numpy(), same.numpy())
