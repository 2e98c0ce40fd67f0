"""The train step: one function for every stage and every strategy."""

from collections.abc import Callable

import keras
import tensorflow as tf

from segdec.network.layers import ignore_dummy_images
from segdec.network.network import SegDecNet
from training.config import LossConfig, StageConfig, TargetConfig
from training.optimization.ema import WeightAverage
from training.optimization.gradients import Batch, Losses, replica_gradients
from training.optimization.loss_scale import LossScale
from training.optimization.objective import stage_losses
from training.stages import Stage

NO_MORE_TERMS = LossConfig()


def build_step(
    strategy: tf.distribute.Strategy,
    network: SegDecNet,
    stage: Stage,
    config: StageConfig,
    target: TargetConfig,
    optimizer: keras.optimizers.Optimizer,
    average: WeightAverage,
    steps_taken: tf.Variable,
    loss_scale: LossScale | None = None,
    loss: LossConfig = NO_MORE_TERMS,
) -> Callable[[Batch], Losses]:
    """Makes the step of one stage.

    Losses are sums over the replica's images divided by the global number of images, so that their
    sum over replicas, and with it the summed gradient, is that of the global batch.

    With a `loss_scale`, a step whose gradient overflows on any replica changes nothing on any of them but
    the scale: not weights, moving statistics, averages, nor the optimiser's state.

    Args:
        strategy: Whose replicas take the step.
        network: The network in training.
        stage: What the step trains.
        config: Settings of the stage.
        target: Weight of the defect pixels.
        optimizer: Owns the variables that the stage trains.
        average: Follows the weights.
        steps_taken: Is advanced by each step.
        loss_scale: For a network that computes in float16.
        loss: Terms of the segmentation loss.

    Returns:
        A function: distributed batch → numbers of the global batch: `loss` and those of its terms,
        `gradient_norm`, before clipping, and the step's `learning_rate`. With a `loss_scale` also
        `loss_scale` and `skipped_steps`, and the norm of a skipped step counts as 0: any number that is
        not finite is then a true failure.
    """
    variables = stage.trainable_variables(network)

    def differentiate(batch: Batch) -> tuple[list[tf.Tensor], Losses, tf.Tensor]:
        images = tf.cast(tf.shape(batch["label"])[0], batch["target"].dtype)
        global_images = tf.distribute.get_replica_context().all_reduce("SUM", images)

        def summed_losses(part: Batch) -> Losses:
            part, present = _stand_in(part)
            with ignore_dummy_images(present):
                losses = stage_losses(network, stage, config, target, loss, part, steps_taken)
            return {name: tf.reduce_sum(term) * present / global_images for name, term in losses.items()}

        values = [variable.value for variable in variables]
        scale = None if loss_scale is None else tf.identity(loss_scale.value)
        return replica_gradients(
            summed_losses, values, batch, parts=config.accumulate, clip_norm=config.clip_norm, scale=scale
        )

    def update(gradients: list[tf.Tensor]) -> None:
        strategy.run(
            lambda shares: optimizer.apply_gradients(zip(shares, variables, strict=True)), (gradients,)
        )
        average.update(strategy)

    def step(batch: Batch) -> Losses:
        statistics = _Statistics(network) if loss_scale else None
        gradients, per_replica, norms = strategy.run(differentiate, args=(batch,))
        losses = {name: strategy.reduce("SUM", loss, axis=None) for name, loss in per_replica.items()}
        norm = strategy.experimental_local_results(norms)[0]
        if loss_scale is None or statistics is None:
            update(gradients)
            report = {"gradient_norm": norm}
        else:
            harmless = loss_scale.decide(
                tf.math.is_finite(norm), lambda: update(gradients), lambda: statistics.restore(strategy)
            )
            report = {"gradient_norm": tf.where(harmless, 0.0, norm), **loss_scale.report()}
        rate = keras.ops.convert_to_tensor(optimizer.learning_rate)
        steps_taken.assign_add(1)  # the update and the rate have read it
        return {**losses, **report, "learning_rate": rate}

    compiled: Callable[[Batch], Losses] = tf.function(step, reduce_retracing=True)
    return compiled


def _stand_in(part: Batch) -> tuple[Batch, tf.Tensor]:
    """Puts a black image where there is none; returns the images and 1, or 0 where one stands in."""
    images = tf.shape(part["label"])[0]
    present = tf.minimum(images, 1)
    filled = {
        name: tf.pad(values, [[0, 1 - present], *[[0, 0]] * (values.shape.rank - 1)])
        for name, values in part.items()
    }
    return filled, tf.cast(present, part["target"].dtype)


class _Statistics:
    """The moving statistics as they were before the forward pass of a step."""

    def __init__(self, network: SegDecNet) -> None:
        self._variables = [variable.value for variable in network.non_trainable_variables]
        self._values = [tf.identity(variable) for variable in self._variables]

    def restore(self, strategy: tf.distribute.Strategy) -> None:
        for variable, value in zip(self._variables, self._values, strict=True):
            strategy.extended.update(variable, lambda one, old: one.assign(old), args=(value,))
