"""The objective of a stage: its losses and their weights."""

from typing import Any

import tensorflow as tf

from segdec.config import STRIDE
from segdec.network.network import SegDecNet, classify
from training.config import ExperimentConfig, StageConfig
from training.data.input_pipeline import Batch
from training.optimization.gradients import Losses
from training.optimization.losses import box_weight, decision_loss, segmentation_loss, select_likeliest_mask
from training.stages import Stage


def stage_losses(
    network: SegDecNet, stage: Stage, config: ExperimentConfig, batch: Batch, steps_taken: Any = 0
) -> Losses:
    """Computes the losses of one replica's images, [B] each; `loss` is the weighted sum of the others.

    The L2 term of the kernels is equal for all images: their average contains it once. The batch has images,
    or the features of the network's encoder. With several heads, the losses are means over the heads, each
    without the images of its own fold.
    """
    losses: Losses = {}
    settings = config.stages[stage.name]
    inputs = batch["image"] if "image" in batch else {name: batch[name] for name in network.heads[0].input}
    outputs = network.segment(inputs, training=stage.trains_segmentation)
    total = tf.zeros_like(batch["label"], outputs[0][2].dtype)
    segmentation_factor, decision_factor = _balance(settings, steps_taken, total.dtype)
    if stage.trains_segmentation:
        each = [_mask_loss(network, coarse, fine, batch, config) for _, coarse, fine in outputs]
        losses["segmentation_loss"] = _mean_of_heads(each, batch)
        total += segmentation_factor * losses["segmentation_loss"]
    if stage.trains_decision:
        parts = zip(network.decisions, outputs, strict=True)
        decided = [decide((features, coarse), training=True) for decide, (features, coarse, _) in parts]
        each = [decision_loss(classify(one, network.config), batch["label"]) for one in decided]
        losses["decision_loss"] = _mean_of_heads(each, batch)
        total += decision_factor * losses["decision_loss"]
    if settings.weight_decay and settings.weight_decay_kind == "l2":
        squares = [tf.nn.l2_loss(kernel.value) for kernel in stage.trainable_kernels(network)]  # includes 1/2
        losses["l2_loss"] = tf.zeros_like(total) + tf.cast(
            settings.weight_decay * tf.add_n(squares), total.dtype
        )
        total += losses["l2_loss"]
    return {"loss": total, **losses}


def _mean_of_heads(losses: list[tf.Tensor], batch: Batch) -> tf.Tensor:
    """The mean of the heads' losses [B]; an image of the fold that a head is trained without counts 0."""
    if len(losses) == 1:
        return losses[0]
    return tf.reduce_mean(tf.stack(losses, axis=1) * tf.cast(batch["head_weight"], losses[0].dtype), axis=1)


def _mask_loss(
    network: SegDecNet,
    coarse_logits: tf.Tensor,
    mask_logits: tf.Tensor,
    batch: Batch,
    config: ExperimentConfig,
) -> tf.Tensor:
    """The segmentation loss; with a decoder the mean of those of the fine and the coarse mask."""

    def loss(logits: tf.Tensor, target: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
        if network.config.mask_channels > 1:
            logits, target = select_likeliest_mask(logits, target, batch["label"])
        weight *= box_weight(logits, target, batch["has_boxes"])
        return segmentation_loss(logits, target, weight, config.loss, config.target.cross_entropy_weight)

    fine = loss(mask_logits, batch["target"], batch["weight"])
    factor = STRIDE // network.config.mask_stride
    if factor == 1:
        return fine
    pooled = (tf.nn.avg_pool2d(batch[name], factor, factor, "VALID") for name in ("target", "weight"))
    return 0.5 * (fine + loss(coarse_logits, *pooled))


def _balance(config: StageConfig, steps_taken: Any, dtype: tf.DType) -> tuple[Any, Any]:
    """Factors of the segmentation and the decision loss.

    Dynamic: λ = 1 − step/steps and 1 − λ (Božič et al. 2021).
    """
    if config.balance == "fixed":
        return config.segmentation_weight, config.decision_weight
    done = tf.cast(steps_taken, dtype) / config.steps
    return (1.0 - done) * config.segmentation_weight, done * config.decision_weight
