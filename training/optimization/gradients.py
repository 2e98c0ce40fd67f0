"""Gradients of a replica, with accumulation, and their reduction over the replicas."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from training.data.input_pipeline import Batch

Losses = dict[str, tf.Tensor]
"""Scalars of a step, or one value per image, by name; `loss` is minimised."""


def replica_gradients(
    summed_losses: Callable[[Batch], Losses],
    variables: list[Any],
    batch: Batch,
    *,
    parts: int,
    scale: tf.Tensor | None = None,
) -> tuple[list[tf.Tensor], Losses]:
    """Differentiates the loss of this replica's images; returns its gradients and losses.

    The batch is processed in `parts` equal parts, one after the other. A loss `scale`, for float16, is
    removed from the gradients.
    """
    gradients: list[tf.Tensor] = []
    losses: Losses = {}
    for index in range(parts):
        part = batch if parts == 1 else _part(batch, index, parts, after=gradients)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            part_losses = summed_losses(part)
            target = part_losses["loss"] if scale is None else part_losses["loss"] * scale
        own = tape.gradient(target, variables)
        gradients = [total + one for total, one in zip(gradients, own, strict=True)] if gradients else own
        losses = {name: losses[name] + loss if losses else loss for name, loss in part_losses.items()}
    if scale is not None:
        gradients = [gradient / scale for gradient in gradients]
    return gradients, losses


def sum_over_replicas(gradients: list[tf.Tensor], numbers: Losses) -> tuple[list[tf.Tensor], Losses]:
    """Adds gradients and numbers over all replicas, in one reduction: each reduction is a synchronisation.

    The numbers get the type of the gradients.
    """
    dtype = gradients[0].dtype
    # A tensor shared by the replicas, such as an argument of the step, becomes one per replica.
    own = [tf.identity(tf.cast(value, dtype)) for value in (*gradients, *numbers.values())]
    sums = tf.distribute.get_replica_context().merge_call(_sum_all, args=own)
    return sums[: len(gradients)], dict(zip(numbers, sums[len(gradients) :], strict=True))


def clip(gradients: list[tf.Tensor], norm: tf.Tensor, clip_norm: float) -> list[tf.Tensor]:
    """Scales gradients of the global `norm` down to `clip_norm`.

    Call it after the reduction: the norms of replicas do not add up to the global one.
    """
    scale = clip_norm / tf.maximum(norm, clip_norm)
    return [gradient * scale for gradient in gradients]


def _sum_all(strategy: tf.distribute.Strategy, *values: Any) -> list[Any]:
    """`ReplicaContext.all_reduce` in cross-replica context, without support for gradients of the sums.

    For that, `all_reduce` searches the graphs of all replicas on each replica, which is nearly half of the
    tracing time with eight replicas.
    """
    pairs = [(value, value) for value in values]  # each sum is placed on the device of its value
    sums: list[Any] = strategy.extended.batch_reduce_to("SUM", pairs)
    return sums


def _part(batch: Batch, index: int, parts: int, after: list[tf.Tensor]) -> Batch:
    """A slice of the batch; it waits for earlier gradients, so that memory is reused."""
    images = tf.shape(batch["label"])[0]
    begin, end = images * index // parts, images * (index + 1) // parts
    with tf.control_dependencies(after):
        return {name: tf.identity(values[begin:end]) for name, values in batch.items()}
