"""The train step: one function for every stage and every strategy."""

from collections.abc import Callable

import keras
import tensorflow as tf

from segdec.network import SegDecNet
from training.averaging import WeightAverage
from training.config import StageConfig, TargetConfig
from training.gradients import Batch, Losses, replica_gradients
from training.losses import decision_loss, segmentation_loss
from training.stages import Stage


def build_step(
    strategy: tf.distribute.Strategy,
    network: SegDecNet,
    stage: Stage,
    config: StageConfig,
    target: TargetConfig,
    optimizer: keras.optimizers.Optimizer,
    average: WeightAverage,
    count: tf.Variable,
) -> Callable[[Batch], Losses]:
    """Makes the step of one stage.

    Losses are sums over the replica's images divided by the global number of images, so that their
    sum over replicas, and with it the summed gradient, is that of the global batch.

    Returns:
        A function: distributed batch → losses of the global batch (`loss` and those of its terms).
    """
    variables = stage.trainable_variables(network)

    def replica_step(batch: Batch) -> Losses:
        images = tf.cast(tf.shape(batch["label"])[0], batch["target"].dtype)
        global_images = tf.distribute.get_replica_context().all_reduce("SUM", images)

        def summed_losses(part: Batch) -> Losses:
            losses = stage_losses(network, stage, config, target, part)
            return {name: tf.reduce_sum(loss) / global_images for name, loss in losses.items()}

        values = [variable.value for variable in variables]
        gradients, losses = replica_gradients(
            summed_losses, values, batch, parts=config.accumulate, clip_norm=config.clip_norm
        )
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return losses

    def step(batch: Batch) -> Losses:
        per_replica = strategy.run(replica_step, args=(batch,))
        average.update(strategy)
        count.assign_add(1)
        return {name: strategy.reduce("SUM", loss, axis=None) for name, loss in per_replica.items()}

    compiled: Callable[[Batch], Losses] = tf.function(step, reduce_retracing=True)
    return compiled


def stage_losses(
    network: SegDecNet, stage: Stage, config: StageConfig, target: TargetConfig, batch: Batch
) -> Losses:
    """The losses of one replica's images, [B] each: the stage's terms and `loss`, their weighted sum."""
    losses: Losses = {}
    features, mask_logits = network.segmentation(batch["image"], training=stage.trains_segmentation)
    total = tf.zeros_like(batch["label"], mask_logits.dtype)
    if stage.trains_segmentation:
        losses["segmentation_loss"] = segmentation_loss(mask_logits, batch["target"], target.positive_weight)
        total += config.segmentation_weight * losses["segmentation_loss"]
    if stage.trains_decision:
        class_logits = network.decision((features, mask_logits), training=True)
        losses["decision_loss"] = decision_loss(class_logits, batch["label"])
        total += config.decision_weight * losses["decision_loss"]
    return {"loss": total, **losses}
