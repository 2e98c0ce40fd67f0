"""Dynamic loss scaling: keeps the gradients of a float16 network within what float16 can hold."""

from collections.abc import Callable

import tensorflow as tf

START = 2.0**15
GROWTH_STEPS = 2000


class LossScale(tf.Module):
    """The factor of the loss before it is differentiated, and what becomes of a step that overflows.

    Such a step is skipped on every replica, and the scale halved; after 2000 sound steps in a row it is
    doubled. It is made within the strategy's scope and saved with the run. Keras' `LossScaleOptimizer`
    looks at the first replica's gradients alone: an overflow on another destroys the weights. With central
    storage it raises.

    The scale never falls below 1: a step that overflows there is no fault of the scale.

    Attributes:
        value: The scale.
        skipped: Steps skipped so far.
    """

    def __init__(self, value: float = START, growth_steps: int = GROWTH_STEPS) -> None:
        super().__init__()
        self.value = tf.Variable(value, dtype=tf.float32, trainable=False, name="loss_scale")
        self.skipped = tf.Variable(0, dtype=tf.int64, trainable=False, name="skipped_steps")
        self._sound = tf.Variable(0, dtype=tf.int64, trainable=False, name="sound_steps")
        self._growth_steps = growth_steps

    def apply_or_skip(
        self, finite: tf.Tensor, take: Callable[[], None], skip: Callable[[], None]
    ) -> tf.Tensor:
        """Takes or skips a step and moves the scale, in cross-replica context and in a graph.

        Args:
            finite: Whether the gradient of the global batch is finite.
            take: Changes the weights.
            skip: Undoes what the forward pass has changed.

        Returns:
            Whether the step was skipped and a smaller scale may help.
        """
        helps = tf.logical_and(tf.logical_not(finite), self.value > 1.0)

        def grow() -> tf.Tensor:
            take()
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
