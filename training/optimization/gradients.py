"""A replica's part of the gradient: in slices where memory is short, clipped by the global norm."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from training.data.input_pipeline import Batch

Losses = dict[str, tf.Tensor]
"""Scalars of a step, or one value an image, by name; `loss` is what is minimised."""


def replica_gradients(
    summed_losses: Callable[[Batch], Losses],
    variables: list[Any],
    batch: Batch,
    *,
    parts: int,
    clip_norm: float | None,
    scale: tf.Tensor | None = None,
) -> tuple[list[tf.Tensor], Losses, tf.Tensor]:
    """Differentiates the loss of this replica's images, in replica context.

    Args:
        summed_losses: The losses of some of the replica's images, summed, in units of the global batch.
        variables: What to differentiate `loss` by.
        batch: The replica's images.
        parts: How many equal parts the images are taken in, one after the other.
        clip_norm: Largest norm of the global batch's gradient, all variables together.
        scale: Factor of the loss on its way backwards, out of the gradients again: for float16.

    Returns:
        The replica's gradients, whose sum over replicas is that of the global batch; its losses; and the
        norm of the global batch's gradient before clipping, the same number on every replica. It is
        finite if and only if the gradients of all replicas are.
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
    norm = _global_norm(gradients)
    return gradients if clip_norm is None else _clip(gradients, norm, clip_norm), losses, norm


def _part(batch: Batch, index: int, parts: int, after: list[tf.Tensor]) -> Batch:
    """A slice of the batch; it waits for the gradients of those before, so that memory is reused."""
    images = tf.shape(batch["label"])[0]
    begin, end = images * index // parts, images * (index + 1) // parts
    with tf.control_dependencies(after):
        return {name: tf.identity(values[begin:end]) for name, values in batch.items()}


def _add(total: list[tf.Tensor], gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    return [one + other for one, other in zip(total, gradients, strict=True)] if total else gradients


def _global_norm(gradients: list[tf.Tensor]) -> tf.Tensor:
    """The norm after the reduction: those of single replicas do not add up to it."""
    return tf.linalg.global_norm(tf.distribute.get_replica_context().all_reduce("SUM", gradients))


def _clip(gradients: list[tf.Tensor], norm: tf.Tensor, clip_norm: float) -> list[tf.Tensor]:
    """The optimiser reduces the gradients itself, so every replica scales its own by the global norm."""
    scale = clip_norm / tf.maximum(norm, clip_norm)
    return [gradient * scale for gradient in gradients]
