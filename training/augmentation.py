"""Random changes of a training image, its target kept in step. Pure functions of their seed."""

import tensorflow as tf

from training.config import AugmentationConfig


def augment(
    image: tf.Tensor, target: tf.Tensor, seed: tf.Tensor, config: AugmentationConfig
) -> tuple[tf.Tensor, tf.Tensor]:
    """Flips both and changes the light of the image.

    Args:
        image: float32 [h, w, C], 0…255.
        target: float32 [h/8, w/8, 1].
        seed: int64 [2].
        config: What may change.

    Returns:
        The changed image, still within 0…255, and its target.
    """
    horizontal, vertical, brightness, contrast = tf.unstack(tf.random.experimental.stateless_split(seed, 4))
    if config.flip_horizontal:
        image, target = _flip(image, target, axis=1, seed=horizontal)
    if config.flip_vertical:
        image, target = _flip(image, target, axis=0, seed=vertical)
    if config.contrast:
        factor = tf.random.stateless_uniform([], contrast, 1.0 - config.contrast, 1.0 + config.contrast)
        mean = tf.reduce_mean(image)
        image = (image - mean) * factor + mean
    if config.brightness:
        image += 255.0 * tf.random.stateless_uniform([], brightness, -config.brightness, config.brightness)
    return tf.clip_by_value(image, 0.0, 255.0), target


def _flip(image: tf.Tensor, target: tf.Tensor, *, axis: int, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Mirrors both along `axis` in half of the cases."""
    chosen = tf.random.stateless_uniform([], seed) < 0.5
    return (
        tf.where(chosen, tf.reverse(image, [axis]), image),
        tf.where(chosen, tf.reverse(target, [axis]), target),
    )
