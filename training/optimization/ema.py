"""Moving averages of the weights: what is validated and exported."""

import tensorflow as tf

from segdec.network.network import SegDecNet
from training.optimization.pretrained import mutable_variables


class WeightEMA(tf.Module):
    """Exponential moving average of what training may change of a network, moving statistics included.

    It is made within the strategy's scope. Of replicas in one process the first alone keeps the average: no
    other one is ever read, and each would take three kernels a variable and step. Reference: Tabernik et al.
    2019 evaluate with averaged weights.

    Args:
        network: Whose weights it follows.
        decay: Fraction that stays at each update; the first ones use less, so that a fresh average follows.
    """

    def __init__(self, network: SegDecNet, decay: float) -> None:
        super().__init__()
        self._variables = [variable.value for variable in mutable_variables(network)]
        self._decay = decay
        self._updates = tf.Variable(0, dtype=tf.int64, trainable=False, name="updates")
        self.shadows = [tf.Variable(value, trainable=False, name="shadow") for value in self._variables]

    def restart(self) -> None:
        """Forgets the past: the average equals the variables."""
        self._updates.assign(0)
        for shadow, variable in zip(self.shadows, self._variables, strict=True):
            shadow.assign(variable)

    def update(self, strategy: tf.distribute.Strategy) -> None:
        """Moves the average towards the variables, in cross-replica context."""
        self._updates.assign_add(1)
        count = tf.cast(self._updates, tf.float32)
        rate = 1.0 - tf.minimum(self._decay, (1.0 + count) / (10.0 + count))
        for variables in zip(self.shadows, self._variables, strict=True):
            shadow, variable = (strategy.experimental_local_results(one)[0] for one in variables)
            with tf.device(shadow.device):
                shadow.assign_sub((shadow - variable) * tf.cast(rate, shadow.dtype))

    def copy_to(self, network: SegDecNet) -> None:
        """Gives a network of the same shape, outside the strategy, the averaged weights."""
        for variable, shadow in zip(mutable_variables(network), self.shadows, strict=True):
            variable.assign(shadow)
