"""The losses, one value an image: the step sums them over replicas and divides by the global count."""

import tensorflow as tf


def segmentation_loss(mask_logits: tf.Tensor, target: tf.Tensor, positive_weight: float) -> tf.Tensor:
    """Sigmoid cross-entropy, averaged over the mask pixels of each image.

    Args:
        mask_logits: [B, h, w, 1].
        target: [B, h, w, 1], share of each cell that is defective, 0…1.
        positive_weight: Factor of the defective share's loss.

    Returns:
        [B], nats a pixel.
    """
    loss = tf.nn.weighted_cross_entropy_with_logits(target, mask_logits, positive_weight)
    return tf.reduce_mean(loss, axis=(1, 2, 3))


def decision_loss(class_logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Softmax cross-entropy of each image.

    Args:
        class_logits: [B, C].
        labels: [B], index of the class, from the full-size mask.

    Returns:
        [B], nats.
    """
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, class_logits)
