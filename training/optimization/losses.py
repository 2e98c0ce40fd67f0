"""The losses, one value an image: the step sums them over replicas and divides by the global count."""

import tensorflow as tf

from training.data.synthetic_source import ANY_DEFECT

SMOOTHING = 1.0
"""Mask pixels added to both sides of the Dice quotient: an image without a defect has one too."""


def segmentation_loss(
    mask_logits: tf.Tensor,
    target: tf.Tensor,
    weight: tf.Tensor,
    positive_weight: float = 1.0,
    focal_gamma: float = 0.0,
    dice_weight: float = 0.0,
) -> tf.Tensor:
    """Averages the weighted sigmoid cross-entropy over each image's mask pixels, and adds the Dice loss.

    A share of a mask pixel counts as so many photograph pixels with the same logit: the focal factor
    (Lin et al., "Focal loss for dense object detection", 2017) is that of defect and background apart.

    Args:
        mask_logits: [B, h, w, M], of one mask, or one for each class of defects.
        target: [B, h, w, M], share of each mask pixel that is defective, 0…1.
        weight: [B, h, w, 1], of each mask pixel; 0 everywhere where the mask is not known, and where nothing
            is inspected.
        positive_weight: Factor of the defective share's loss.
        focal_gamma: Exponent of the focal factor (1 − p)^gamma; 0 = no factor.
        dice_weight: Factor of the Dice loss of each image whose mask is known.

    Returns:
        [B], nats a pixel, the sum over the masks; 0 for an image whose mask is not known.
    """
    if focal_gamma:
        entropy = _focal_entropy(mask_logits, target, positive_weight, focal_gamma)
    else:
        entropy = tf.nn.weighted_cross_entropy_with_logits(target, mask_logits, positive_weight)
    loss = tf.reduce_mean(weight * entropy, axis=(1, 2, 3))
    if (masks := mask_logits.shape[-1]) > 1:
        loss *= masks
    if dice_weight:
        known = tf.cast(tf.reduce_max(weight, axis=(1, 2, 3)) > 0, loss.dtype)
        counted = tf.cast(weight > 0, loss.dtype)
        loss += dice_weight * known * dice_loss(mask_logits, target, counted)
    return loss


def select_likeliest_mask(
    logits: tf.Tensor, target: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Leaves one mask of images that show some defect of no known class: the surest of all classes.

    Args:
        logits: [B, h, w, M].
        target: [B, h, w, M], of such images the same for each class.
        labels: [B], `ANY_DEFECT` for such images.

    Returns:
        Logits and target of the same shape. The logits of all other masks of such an image, which no target
        is known for, are as sure as can be that nothing is there, and move no weight.
    """
    unknown = (labels == ANY_DEFECT)[:, None, None, None]
    surest = tf.one_hot(tf.argmax(logits, axis=-1), logits.shape[-1], on_value=True, off_value=False)
    left_out = unknown & ~surest
    return (
        tf.where(left_out, tf.constant(-30.0, logits.dtype), logits),
        tf.where(left_out, tf.zeros_like(target), target),
    )


def _focal_entropy(
    mask_logits: tf.Tensor, target: tf.Tensor, positive_weight: float, gamma: float
) -> tf.Tensor:
    """From logits alone: log p = −softplus(−x) and log(1 − p) = −softplus(x) lose no digit at either end."""
    missed, alarmed = tf.nn.softplus(-mask_logits), tf.nn.softplus(mask_logits)
    defect = positive_weight * target * missed * tf.exp(-gamma * alarmed)
    return defect + (1.0 - target) * alarmed * tf.exp(-gamma * missed)


def dice_loss(mask_logits: tf.Tensor, target: tf.Tensor, counted: tf.Tensor | float = 1.0) -> tf.Tensor:
    """Returns one minus the smoothed soft Dice coefficient of each image.

    Source: Milletari et al., "V-Net", 2016.

    Args:
        mask_logits: [B, h, w, M], all masks together.
        target: [B, h, w, M], 0…1.
        counted: [B, h, w, 1], 1 for the pixels that count, 0 for the others, whose target is 0.

    Returns:
        [B], 0…1.
    """
    found = tf.sigmoid(mask_logits) * counted
    common = tf.reduce_sum(found * target, axis=(1, 2, 3))
    both = tf.reduce_sum(found + target, axis=(1, 2, 3))
    return 1.0 - (2.0 * common + SMOOTHING) / (both + SMOOTHING)


def decision_loss(class_logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Returns the softmax cross-entropy of each image.

    Of an image that shows some defect of no known class it is that of all of them: −log(1 − P(good)).

    Args:
        class_logits: [B, C].
        labels: [B], index of the class, from the full-size mask, or `ANY_DEFECT`.

    Returns:
        [B], nats.
    """
    known = labels != ANY_DEFECT
    of_class = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.where(known, labels, 1), class_logits)
    if class_logits.shape[-1] == 2:
        return of_class
    of_any = tf.reduce_logsumexp(class_logits, -1) - tf.reduce_logsumexp(class_logits[:, 1:], -1)
    return tf.where(known, of_class, of_any)
