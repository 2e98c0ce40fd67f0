"""A replica's part of the gradient, in slices where memory is short, and the one reduction of a step."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from training.data.input_pipeline import Batch

Losses = dict[str, tf.Tensor]
"""Numbers of a step, or one value an image, by name; `loss` is what is minimised."""


def replica_gradients(
    summed_losses: Callable[[Batch], Losses],
    variables: list[Any],
    batch: Batch,
    *,
    parts: int,
    scale: tf.Tensor | None = None,
) -> tuple[list[tf.Tensor], Losses]:
    """Differentiates the loss of this replica's images, in replica context.

    Args:
        summed_losses: The losses of some of the replica's images, summed.
        variables: What to differentiate `loss` by.
        batch: The replica's images.
        parts: How many equal parts the images are taken in, one after the other.
        scale: Factor of the loss on its way backwards, out of the gradients again: for float16.

    Returns:
        The replica's own gradients, and its losses.
    """
    gradients: list[tf.Tensor] = []
    losses: Losses = {}
    for index in range(parts):
        part = batch if parts == 1 else _part(batch, index, parts, after=gradients)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            part_losses = summed_losses(part)
            target = part_losses["loss"] if scale is None else part_losses["loss"] * scale
        gradients = _add(gradients, tape.gradient(target, variables))
        losses = {name: losses[name] + loss if losses else loss for name, loss in part_losses.items()}
    if scale is not None:
        gradients = [gradient / scale for gradient in gradients]
    return gradients, losses


def sum_over_replicas(gradients: list[tf.Tensor], numbers: Losses) -> tuple[list[tf.Tensor], Losses]:
    """Adds up what all replicas have, in one reduction of a step: each more is one more wait for all of them.

    Args:
        gradients: Of this replica.
        numbers: Of this replica; they take on the type of the gradients, which go into one message.

    Returns:
        The sums, on every replica the same.
    """
    dtype = gradients[0].dtype
    # A tensor that replicas share, such as an argument of the step, becomes one of each.
    own = [tf.identity(tf.cast(value, dtype)) for value in (*gradients, *numbers.values())]
    sums = tf.distribute.get_replica_context().merge_call(_sum_all, args=own)
    return sums[: len(gradients)], dict(zip(numbers, sums[len(gradients) :], strict=True))


def clip(gradients: list[tf.Tensor], norm: tf.Tensor, clip_norm: float) -> list[tf.Tensor]:
    """Shortens gradients of the global `norm` to `clip_norm`, all together; shorter ones stay as they are.

    After the reduction: the norms of single replicas do not add up to the global one.
    """
    scale = clip_norm / tf.maximum(norm, clip_norm)
    return [gradient * scale for gradient in gradients]


def _sum_all(strategy: tf.distribute.Strategy, *values: Any) -> list[Any]:
    """`ReplicaContext.all_reduce`, in cross-replica context, and without the gradient of the sums.

    To prepare that, which nobody takes, `all_reduce` looks for variables in the graphs of all replicas, once
    on each: nearly half of the time that eight take to trace.
    """
    pairs = [(value, value) for value in values]  # the sums are to be where the values are
    sums: list[Any] = strategy.extended.batch_reduce_to("SUM", pairs)
    return sums


def _part(batch: Batch, index: int, parts: int, after: list[tf.Tensor]) -> Batch:
    """A slice of the batch; it waits for the gradients of those before, so that memory is reused."""
    images = tf.shape(batch["label"])[0]
    begin, end = images * index // parts, images * (index + 1) // parts
    with tf.control_dependencies(after):
        return {name: tf.identity(values[begin:end]) for name, values in batch.items()}


def _add(total: list[tf.Tensor], gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    return [one + other for one, other in zip(total, gradients, strict=True)] if total else gradients
