"""The losses, one value per image: the step adds them over replicas and divides by the global batch size."""

import tensorflow as tf

from training.config import LossConfig
from training.data.synthetic_source import ANY_DEFECT

SMOOTHING = 1.0
"""Mask pixels added to numerator and denominator of the Dice coefficient, also for good images."""


def segmentation_loss(
    mask_logits: tf.Tensor,
    target: tf.Tensor,
    weight: tf.Tensor,
    config: LossConfig,
    positive_weight: float = 1.0,
) -> tf.Tensor:
    """Computes the weighted sigmoid cross-entropy of each image's mask pixels, and the configured terms.

    Args:
        mask_logits: [B, h, w, M], one mask, or one per defect class.
        target: [B, h, w, M], defective share of each mask pixel, 0…1.
        weight: [B, h, w, 1] or [B, h, w, M], weight of each mask pixel; 0 if the mask is unknown or the
            pixel is not inspected.
        config: Terms of the loss.
        positive_weight: Factor of the defective share's loss.

    Returns:
        [B], nats per pixel, summed over the masks; 0 for an image with an unknown mask.
    """
    entropy = focal_entropy(mask_logits, target, positive_weight, config.focal_gamma)
    loss = tf.reduce_mean(weight * entropy, axis=(1, 2, 3)) * mask_logits.shape[-1]
    if config.dice_weight:
        loss += config.dice_weight * dice_loss(mask_logits, target, weight)
    return loss


def focal_entropy(
    mask_logits: tf.Tensor, target: tf.Tensor, positive_weight: float = 1.0, gamma: float = 0.0
) -> tf.Tensor:
    """Returns the cross-entropy of each mask pixel, times (1 − p)^gamma, p = probability of the truth.

    The factor applies to defective and good share separately. It is computed from logits alone:
    log p = −softplus(−x) and log(1 − p) = −softplus(x) are exact at both ends.

    Source: Lin et al., "Focal loss for dense object detection", 2017.
    """
    if not gamma:
        return tf.nn.weighted_cross_entropy_with_logits(target, mask_logits, positive_weight)
    missed, alarmed = tf.nn.softplus(-mask_logits), tf.nn.softplus(mask_logits)
    defect = positive_weight * target * missed * tf.exp(-gamma * alarmed)
    return defect + (1.0 - target) * alarmed * tf.exp(-gamma * missed)


def dice_loss(mask_logits: tf.Tensor, target: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Returns one minus the smoothed soft Dice coefficient of each image [B], 0…1; 0 if its mask is unknown.

    Logits and target are [B, h, w, M]; all M masks count together, over pixels with a `weight` [B, h, w, 1]
    or [B, h, w, M] above 0. Source: Milletari et al., "V-Net", 2016.
    """
    counted = tf.cast(weight > 0, mask_logits.dtype)
    predicted, target = tf.sigmoid(mask_logits) * counted, target * counted
    common = tf.reduce_sum(predicted * target, axis=(1, 2, 3))
    both = tf.reduce_sum(predicted + target, axis=(1, 2, 3))
    return 1.0 - (2.0 * common + SMOOTHING) / (both + SMOOTHING)


def box_weight(logits: tf.Tensor, target: tf.Tensor, has_boxes: tf.Tensor) -> tf.Tensor:
    """Returns the factor of each pixel's weight, [B, h, w, M]; 1 in images whose `has_boxes` [B] is 0.

    A box has a defect in each of its rows and columns, but where is unknown: inside, only the pixels with the
    highest logit of their row or column count, the others have 0. The area of the defects is between their
    number and the area of the boxes: together they weigh as much as the geometric mean of both. Boxes that
    touch count as one, and the part of a box in a tile as a box. `logits` and `target` are [B, h, w, M].

    Source: Tian et al., "BoxInst: high-performance instance segmentation with box annotations", 2021.
    """
    inside = (target > 0) & (has_boxes > 0)[:, None, None, None]
    logits = tf.stop_gradient(logits)
    lower = tf.minimum(*(_highest_of_line(logits, inside, axis) for axis in (1, 2)))
    boxes, highest = (tf.cast(one, logits.dtype) for one in (inside, inside & (logits >= lower)))
    area, count = (tf.reduce_sum(one, axis=(1, 2, 3), keepdims=True) for one in (boxes, highest))
    return 1.0 - boxes + highest * tf.sqrt(tf.math.divide_no_nan(area, count))


def _highest_of_line(logits: tf.Tensor, inside: tf.Tensor, axis: int) -> tf.Tensor:
    """Returns the highest logit of each unbroken line of pixels `inside` along an axis, at its pixels."""
    size, shape = tf.size(logits), tf.shape(logits)
    begin = tf.reduce_min(tf.reshape(tf.range(size), shape), axis=axis, keepdims=True)
    outside_before = tf.cumsum(tf.cast(~inside, tf.int32), axis=axis, exclusive=True)  # equal within a line
    line = begin + outside_before * tf.reduce_prod(shape[axis + 1 :])
    highest = tf.math.unsorted_segment_max(tf.where(inside, logits, logits.dtype.min), line, size)
    return tf.gather(highest, line)


def select_likeliest_mask(
    logits: tf.Tensor, target: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Keeps at each pixel only the mask with the largest logit, for images with a defect of unknown class.

    Their label [B] is `ANY_DEFECT`, and their target [B, h, w, M] is equal for all classes. The other masks
    of such an image get target 0 and a constant logit with practically no loss and no gradient.
    """
    unknown = (labels == ANY_DEFECT)[:, None, None, None]
    largest = tf.one_hot(tf.argmax(logits, axis=-1), logits.shape[-1], on_value=True, off_value=False)
    omitted = unknown & ~largest
    return (
        tf.where(omitted, tf.constant(-30.0, logits.dtype), logits),
        tf.where(omitted, tf.zeros_like(target), target),
    )


def decision_loss(class_logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Returns the softmax cross-entropy of each image, [B], nats, for logits [B, C] and labels [B].

    For a defect of unknown class, `ANY_DEFECT`, it is that of all defect classes together:
    −log(1 − P(good)).
    """
    known = labels != ANY_DEFECT
    of_class = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.where(known, labels, 1), class_logits)
    if class_logits.shape[-1] == 2:
        return of_class
    of_any = tf.reduce_logsumexp(class_logits, -1) - tf.reduce_logsumexp(class_logits[:, 1:], -1)
    return tf.where(known, of_class, of_any)
