"""Weight decay of kernels: as a term of the loss, or decoupled from the optimiser."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def l2_loss(kernels: Sequence[Any], factor: float, dtype: tf.DType) -> tf.Tensor:
    """Returns `factor` / 2 times the sum of the squares of all kernels, a scalar of type `dtype`."""
    squares = [tf.nn.l2_loss(kernel.value) for kernel in kernels]  # includes the factor 1/2
    return tf.cast(factor * tf.add_n(squares), dtype)


def decay_kernel(strategy: tf.distribute.Strategy, kernel: Any, fraction: tf.Tensor) -> None:
    """Subtracts `fraction` of a kernel on each of its devices, in cross-replica context.

    The `weight_decay` of Keras' optimisers also applies to norm scales and biases: its exclusions compare the
    identity of variables, which differs within a strategy.

    Reference: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.
    """
    strategy.extended.update(kernel.value, _shrink, args=(fraction,))


def _shrink(kernel: tf.Variable, fraction: tf.Tensor) -> None:
    kernel.assign_sub(kernel * tf.cast(fraction, kernel.dtype))
