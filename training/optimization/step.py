"""The train step of every stage and strategy."""

from collections.abc import Callable

import keras
import tensorflow as tf

from segdec.network.layers import ignore_dummy_images
from segdec.network.network import SegDecNet
from training.config import ExperimentConfig
from training.data.input_pipeline import Batch
from training.optimization.gradients import Losses, clip, replica_gradients, sum_over_replicas
from training.optimization.objective import stage_losses
from training.optimization.pretrained import mutable_variables
from training.optimization.train_state import TrainState
from training.stages import Stage, is_kernel

STOP_REQUESTS = "stop_requests"
"""Name of the number of replicas whose process was asked to stop, in multi-process steps."""

REPLICA_LOSSES = "replica_losses"
"""Name of the losses of all replicas, [replicas], before they are split into scalars."""


def build_step(
    strategy: tf.distribute.Strategy,
    state: TrainState,
    stage: Stage,
    config: ExperimentConfig,
    *,
    multi_process: bool = False,
) -> Callable[..., Losses]:
    """Compiles the step of one stage, which changes `state`.

    Summed losses, their gradients and the number of images are added over the replicas in one reduction, and
    divided by the global number of images. With a loss scale, a step whose gradient overflows on any replica
    changes only the scale.

    Returns:
        A function: distributed batch → numbers of the global batch: `loss` and its terms, `gradient_norm`
        before clipping, and `learning_rate`. With several replicas also `replica_loss_0` and so on, the mean
        loss of each replica's images, 0 without images. With a loss scale also `loss_scale` and
        `skipped_steps`; the norm of a skipped step is 0, so that numbers that are not finite indicate an
        error. With several processes there is a second argument, 1.0 if this process was asked to stop,
        otherwise 0.0, and the result has `stop_requests`, the sum over all replicas.
    """
    step = _Step(strategy, state, stage, config)
    # Batches of another size use a relaxed graph: tracing is slow.
    # The coordinator of parameter servers accepts no optional argument.
    run = step.run_multi_process if multi_process else step.run
    compiled: Callable[..., Losses] = tf.function(run, reduce_retracing=True, autograph=False)
    return compiled


class _Step:
    """A step before compilation.

    `_run` and `_update` run once, in cross-replica context; `_differentiate` runs on every replica, with its
    own images and weights.
    """

    def __init__(
        self, strategy: tf.distribute.Strategy, state: TrainState, stage: Stage, config: ExperimentConfig
    ) -> None:
        self._strategy, self._state, self._stage, self._config = strategy, state, stage, config
        self._settings = config.stages[stage.name]
        self._optimizer = state.optimizers[stage.name]
        self._variables = stage.trainable_variables(state.network)
        backbone = state.network.backbone
        encoder = set() if backbone is None else {id(variable) for variable in backbone.variables}
        self._rate_factors = [
            config.encoder_learning_rate if id(variable) in encoder else 1.0 for variable in self._variables
        ]

    def run(self, batch: Batch) -> Losses:
        return self._run(batch, None)

    def run_multi_process(self, batch: Batch, stop_requests: tf.Tensor) -> Losses:
        return self._run(batch, stop_requests)

    def _run(self, batch: Batch, stop_requests: tf.Tensor | None) -> Losses:
        strategy, state = self._strategy, self._state
        # The forward pass changes the statistics before it is known whether the gradient is finite.
        statistics = _Statistics(state.network) if state.loss_scale else None
        gradients, per_replica = strategy.run(self._differentiate, args=(batch, stop_requests))
        # They are equal on all replicas.
        losses = {name: strategy.experimental_local_results(loss)[0] for name, loss in per_replica.items()}
        if REPLICA_LOSSES in losses:
            own = tf.unstack(losses.pop(REPLICA_LOSSES))
            losses |= {f"replica_loss_{index}": loss for index, loss in enumerate(own)}
        norm = losses.pop("gradient_norm")
        rate = keras.ops.convert_to_tensor(self._optimizer.learning_rate)
        if state.loss_scale is None or statistics is None:
            self._update(gradients, rate)
            report = {"gradient_norm": norm}
        else:
            skipped = state.loss_scale.apply_or_skip(
                tf.math.is_finite(norm),
                lambda: self._update(gradients, rate),
                lambda: statistics.restore(strategy),
            )
            report = {"gradient_norm": tf.where(skipped, 0.0, norm), **state.loss_scale.report()}
        state.step.assign_add(1)  # last: balance, update and rate read it
        return {**losses, **report, "learning_rate": rate}

    def _differentiate(self, batch: Batch, stop_requests: tf.Tensor | None) -> tuple[list[tf.Tensor], Losses]:
        """The gradients and numbers of the global batch, equal on all replicas."""
        own_gradients, own_losses = self._differentiate_own(batch)
        images = tf.cast(tf.shape(batch["label"])[0], own_losses["loss"].dtype)
        numbers = {"images": images, **_replica_losses(own_losses["loss"] * self._config.batch_size, images)}
        if stop_requests is not None:
            numbers[STOP_REQUESTS] = stop_requests
        sums, numbers = sum_over_replicas(own_gradients, {**own_losses, **numbers})
        # Replicas may have different numbers of images, so that a mean of means would weight images
        # unequally.
        share = self._config.batch_size / numbers.pop("images")
        gradients = [gradient * share for gradient in sums]
        numbers |= {name: numbers[name] * share for name in own_losses}
        numbers["gradient_norm"] = norm = tf.linalg.global_norm(gradients)
        clip_norm = self._settings.clip_norm
        return gradients if clip_norm is None else clip(gradients, norm, clip_norm), numbers

    def _differentiate_own(self, batch: Batch) -> tuple[list[tf.Tensor], Losses]:
        """Gradients and losses of this replica's images, divided by the batch size."""

        def summed_losses(part: Batch) -> Losses:
            part, present = pad_empty(part)
            with ignore_dummy_images(present):
                losses = stage_losses(self._state.network, self._stage, self._config, part, self._state.step)
            share = present / self._config.batch_size
            return {name: tf.reduce_sum(term) * share for name, term in losses.items()}

        scale = self._state.loss_scale
        return replica_gradients(
            summed_losses,
            [variable.value for variable in self._variables],
            batch,
            parts=self._settings.accumulate,
            scale=None if scale is None else tf.identity(scale.value),
        )

    def _update(self, gradients: list[tf.Tensor], rate: tf.Tensor) -> None:
        settings, optimizer = self._settings, self._optimizer
        decay = settings.weight_decay if settings.weight_decay_kind == "decoupled" else 0.0

        def shrink(kernel: tf.Variable, fraction: tf.Tensor) -> None:
            kernel.assign_sub(kernel * tf.cast(fraction, kernel.dtype))

        def move(variable: tf.Variable, gradient: tf.Tensor, own_rate: tf.Tensor) -> None:
            optimizer.update_step(gradient, variable, own_rate)

        # `apply_gradients` would sum the gradients over the replicas again.
        for variable, gradient, factor in zip(self._variables, gradients, self._rate_factors, strict=True):
            own_rate = rate if factor == 1.0 else rate * factor
            # Loshchilov and Hutter, "Decoupled weight decay regularization", 2019. The `weight_decay` of
            # Keras' optimisers would also apply to norm scales and biases.
            if decay and is_kernel(variable):
                self._strategy.extended.update(variable.value, shrink, args=(own_rate * decay,))
            self._strategy.extended.update(variable.value, move, args=(gradient, own_rate), group=False)
        optimizer.iterations.assign_add(1)
        self._state.ema.update(self._strategy)


def _replica_losses(loss: tf.Tensor, images: tf.Tensor) -> Losses:
    """The mean loss of this replica's images at its index, 0 elsewhere; nothing for a single replica."""
    replica = tf.distribute.get_replica_context()
    if replica.num_replicas_in_sync == 1:
        return {}
    own, none = loss / tf.maximum(images, 1.0), tf.zeros_like(loss)
    index, replicas = replica.replica_id_in_sync_group, replica.num_replicas_in_sync
    # `one_hot` keeps a NaN at its index.
    return {REPLICA_LOSSES: tf.one_hot(index, replicas, on_value=own, off_value=none)}


def pad_empty(part: Batch) -> tuple[Batch, tf.Tensor]:
    """Pads an empty batch with a black image; returns the batch and 1, or 0 for a padded one.

    A replica without images must run the step too: the others wait for it in every reduction, and many
    kernels fail on an empty batch.
    """
    images = tf.shape(part["label"])[0]
    present = tf.minimum(images, 1)
    filled = {
        name: tf.pad(values, [[0, 1 - present], *[[0, 0]] * (values.shape.rank - 1)])
        for name, values in part.items()
    }
    return filled, tf.cast(present, part["target"].dtype)


class _Statistics:
    """The moving statistics before the forward pass of a step."""

    def __init__(self, network: SegDecNet) -> None:
        moving = {id(variable) for variable in network.non_trainable_variables}
        self._variables = [one.value for one in mutable_variables(network) if id(one) in moving]
        self._values = [tf.identity(variable) for variable in self._variables]

    def restore(self, strategy: tf.distribute.Strategy) -> None:
        for variable, value in zip(self._variables, self._values, strict=True):
            strategy.extended.update(variable, lambda one, old: one.assign(old), args=(value,))
