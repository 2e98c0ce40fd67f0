"""The objective of a stage: its losses and their weights."""

from typing import Any

import tensorflow as tf

from segdec.config import STRIDE
from segdec.network.network import SegDecNet
from training.config import ExperimentConfig, StageConfig
from training.data.input_pipeline import Batch
from training.optimization.gradients import Losses
from training.optimization.losses import decision_loss, segmentation_loss, select_likeliest_mask
from training.stages import Stage


def stage_losses(
    network: SegDecNet, stage: Stage, config: ExperimentConfig, batch: Batch, steps_taken: Any = 0
) -> Losses:
    """Computes the losses of one replica's images, [B] each; `loss` is the weighted sum of the others.

    The L2 term of the kernels is equal for all images: their average contains it once. The batch has images,
    or the features of the network's encoder.
    """
    losses: Losses = {}
    settings = config.stages[stage.name]
    if network.head is None or "image" in batch:
        segment, inputs = network.segmentation, batch["image"]
    else:
        segment, inputs = network.head, {name: batch[name] for name in network.head.input}
    features, coarse_logits, mask_logits = segment(inputs, training=stage.trains_segmentation)
    total = tf.zeros_like(batch["label"], mask_logits.dtype)
    segmentation_factor, decision_factor = _balance(settings, steps_taken, total.dtype)
    if stage.trains_segmentation:
        losses["segmentation_loss"] = _mask_loss(network, coarse_logits, mask_logits, batch, config)
        total += segmentation_factor * losses["segmentation_loss"]
    if stage.trains_decision:
        class_logits = network.decision((features, coarse_logits), training=True)
        losses["decision_loss"] = decision_loss(class_logits, batch["label"])
        total += decision_factor * losses["decision_loss"]
    if settings.weight_decay and settings.weight_decay_kind == "l2":
        squares = [tf.nn.l2_loss(kernel.value) for kernel in stage.trainable_kernels(network)]  # includes 1/2
        losses["l2_loss"] = tf.zeros_like(total) + tf.cast(
            settings.weight_decay * tf.add_n(squares), total.dtype
        )
        total += losses["l2_loss"]
    return {"loss": total, **losses}


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
