"""Weight decay, of the kernels alone: a term of the loss, or beside the optimiser."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def l2_loss(kernels: Sequence[Any], factor: float, dtype: tf.DType) -> tf.Tensor:
    """Returns `factor` / 2 times the sum of the squares of all kernels, a scalar of type `dtype`."""
    squares = [tf.nn.l2_loss(kernel.value) for kernel in kernels]  # halved there
    return tf.cast(factor * tf.add_n(squares), dtype)


def decay_kernel(strategy: tf.distribute.Strategy, kernel: Any, fraction: tf.Tensor) -> None:
    """Takes `fraction` of a kernel away, on every device that holds it, in cross-replica context.

    It stands for the `weight_decay` of Keras' optimisers, which shrinks norm scales and biases as well: what
    is left out there is found again by the identity of variables, and those of a strategy have another.

    Reference: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.
    """
    strategy.extended.update(kernel.value, _shrink, args=(fraction,))


def _shrink(kernel: tf.Variable, fraction: tf.Tensor) -> None:
    kernel.assign_sub(kernel * tf.cast(fraction, kernel.dtype))
