"""Adam with one kernel per variable."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="segdec")
class FusedAdam(keras.optimizers.Adam):
    """Keras' Adam with TensorFlow's fused kernel and the same state; Keras uses twenty operations a variable.

    Reference: Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._powers = _Powers()

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates a variable and its moments."""
        index, dtype = self._get_variable_index(variable), variable.dtype
        first, second = self._powers.at(self.iterations, (self.beta_1, self.beta_2), variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=first,
            beta2_power=second,
            lr=tf.cast(learning_rate, dtype),
            beta1=tf.constant(self.beta_1, dtype),
            beta2=tf.constant(self.beta_2, dtype),
            epsilon=tf.constant(self.epsilon, dtype),
            grad=tf.cast(gradient, dtype),
        )


class _Powers:
    """The powers of the decays at a step, computed once per device of a graph."""

    def __init__(self) -> None:
        self._graph: Any = None
        self._known: dict[Any, list[tf.Tensor]] = {}
        self._updated: set[Any] = set()

    def at(self, iterations: Any, decays: tuple[float, float], variable: Any) -> list[tf.Tensor]:
        """Returns them for the current step in the type of `variable`, which is updated next."""
        if tf.executing_eagerly():
            return self._compute(iterations, decays, variable.dtype)
        graph = tf.compat.v1.get_default_graph()
        if (
            graph is not self._graph or variable.ref() in self._updated
        ):  # each variable is updated once per step
            self._graph, self._known, self._updated = graph, {}, set()
        self._updated.add(variable.ref())
        key = (variable.device, variable.dtype)
        if key not in self._known:
            self._known[key] = self._compute(iterations, decays, variable.dtype)
        return self._known[key]

    def _compute(self, iterations: Any, decays: tuple[float, float], dtype: tf.DType) -> list[tf.Tensor]:
        step = tf.cast(iterations.value + 1, dtype)
        return [tf.pow(tf.constant(decay, dtype), step) for decay in decays]
