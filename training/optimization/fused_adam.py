"""Adam, one kernel a variable."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="segdec")
class FusedAdam(keras.optimizers.Adam):
    """Keras' Adam, with the same state, by TensorFlow's own kernel for it.

    Keras takes some twenty operations a variable and replica, the correction of the rate among them, which is
    the same for all variables of a step.

    Reference: Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._powers = _Powers()

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Moves a variable, and its two averages, by its gradient."""
        index = self._get_variable_index(variable)
        dtype = variable.dtype
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
    """The powers of both decays at a step, once for each device of a graph."""

    def __init__(self) -> None:
        self._graph: Any = None
        self._known: dict[tuple[str, Any], list[Any]] = {}

    def at(self, iterations: Any, decays: tuple[float, float], variable: Any) -> list[Any]:
        """Returns them for the step after so many, of the type and on the device of `variable`."""
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        if graph is None or graph is not self._graph:
            self._graph, self._known = graph, {}
        place = (variable.device, variable.dtype)
        if graph is None or place not in self._known:
            step = tf.cast(iterations.value + 1, variable.dtype)
            self._known[place] = [tf.pow(tf.constant(decay, variable.dtype), step) for decay in decays]
        return self._known[place]
