"""Moving averages of the weights, which are validated and exported."""

import tensorflow as tf

from segdec.network.network import SegDecNet
from training.optimization.pretrained import mutable_variables


class WeightEMA(tf.Module):
    """Exponential moving average of the mutable variables of a network, moving statistics included.

    Create it within the strategy's scope. Only the first replica of a process stores the average: the others
    would cost three kernels per variable and step. `decay` is the share of the old average in an update,
    smaller in the first updates. Reference: Tabernik et al. 2019 evaluate with averaged weights.
    """

    def __init__(self, network: SegDecNet, decay: float) -> None:
        super().__init__()
        self._variables = [variable.value for variable in mutable_variables(network)]
        self._decay = decay
        self._updates = tf.Variable(0, dtype=tf.int64, trainable=False, name="updates")
        self.shadows = [tf.Variable(value, trainable=False, name="shadow") for value in self._variables]

    def restart(self) -> None:
        """Sets the averages to the current values of the variables."""
        self._updates.assign(0)
        for shadow, variable in zip(self.shadows, self._variables, strict=True):
            shadow.assign(variable)

    def update(self, strategy: tf.distribute.Strategy) -> None:
        """Updates the average, in cross-replica context."""
        self._updates.assign_add(1)
        count = tf.cast(self._updates, tf.float32)
        rate = 1.0 - tf.minimum(self._decay, (1.0 + count) / (10.0 + count))
        for variables in zip(self.shadows, self._variables, strict=True):
            shadow, variable = (strategy.experimental_local_results(one)[0] for one in variables)
            with tf.device(shadow.device):
                shadow.assign_sub((shadow - variable) * tf.cast(rate, shadow.dtype))

    def copy_to(self, network: SegDecNet) -> None:
        """Copies the averaged weights to a network of the same shape outside the strategy."""
        for variable, shadow in zip(mutable_variables(network), self.shadows, strict=True):
            variable.assign(shadow)
