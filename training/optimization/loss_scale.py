"""Dynamic loss scaling, which keeps the gradients of a float16 network within the range of float16."""

from collections.abc import Callable

import tensorflow as tf

START = 2.0**15
GROWTH_STEPS = 2000


class LossScale(tf.Module):
    """The factor of the loss before differentiation; steps that overflow are skipped.

    After an overflow all replicas skip the step and the scale is halved, but never below 1; after 2000
    finite steps in a row it is doubled. Create it within the strategy's scope. Keras' `LossScaleOptimizer`
    checks the first replica only and fails with central storage.
    """

    def __init__(self, value: float = START, growth_steps: int = GROWTH_STEPS) -> None:
        super().__init__()
        self.value = tf.Variable(value, dtype=tf.float32, trainable=False, name="loss_scale")
        self.skipped = tf.Variable(0, dtype=tf.int64, trainable=False, name="skipped_steps")
        self._sound = tf.Variable(0, dtype=tf.int64, trainable=False, name="sound_steps")
        self._growth_steps = growth_steps

    def apply_or_skip(
        self, finite: tf.Tensor, apply: Callable[[], None], skip: Callable[[], None]
    ) -> tf.Tensor:
        """Applies or skips a step and updates the scale, in cross-replica context and in a graph.

        `skip` restores the state before the forward pass. Returns whether the step was skipped and a smaller
        scale may help.
        """
        helps = tf.logical_and(tf.logical_not(finite), self.value > 1.0)

        def grow() -> tf.Tensor:
            apply()
            grown = tf.equal(self._sound + 1, self._growth_steps)
            self.value.assign(tf.where(grown, 2.0 * self.value, self.value))
            self._sound.assign(tf.where(grown, tf.zeros_like(self._sound), self._sound + 1))
            return helps

        def shrink() -> tf.Tensor:
            skip()
            self.value.assign(tf.maximum(0.5 * self.value, 1.0))
            self._sound.assign(tf.zeros_like(self._sound))
            self.skipped.assign_add(1)
            return helps

        return tf.cond(finite, grow, shrink)

    def report(self) -> dict[str, tf.Tensor]:
        """Returns the scale and the number of skipped steps, for the log."""
        return {"loss_scale": tf.identity(self.value), "skipped_steps": tf.identity(self.skipped)}
