"""Normalisation layers that Keras lacks, and the choice among all of them."""

from typing import Any

import keras
from keras import ops

from segdec.config import NetworkConfig

EPSILON = 1e-3


@keras.saving.register_keras_serializable(package="segdec")
class ReplicaBatchNormalization(keras.layers.BatchNormalization):
    """Batch normalisation whose moving statistics are averaged over the replicas.

    Keras keeps one drifting copy of the moving mean and variance on each replica and saves the first.

    Input shape:
        `[B, H, W, C]`

    Output shape:
        `[B, H, W, C]`
    """

    def add_weight(self, *args: Any, trainable: bool = True, **kwargs: Any) -> Any:
        """Adds a weight; the moving statistics (the weights that are not trained) are mean-aggregated."""
        if not trainable:
            kwargs["aggregation"] = "mean"
        return super().add_weight(*args, trainable=trainable, **kwargs)


@keras.saving.register_keras_serializable(package="segdec")
class FeatureNormalization(keras.layers.Layer):
    """Normalises each channel of each image by the root of its standard deviation.

    `y = gamma · (x − mean) / sqrt(std + epsilon) + beta`, mean and unbiased std over height and width.
    The square root of the *standard deviation*, not of the variance, is what the paper's network uses.

    Args:
        epsilon: Added to the standard deviation.
        center: Whether to add the trained offset `beta`.

    Input shape:
        `[B, H, W, C]`

    Output shape:
        `[B, H, W, C]`

    Reference:
        Božič et al., "Mixed supervision for surface-defect detection", Computers in Industry 2021.
    """

    def __init__(self, epsilon: float = EPSILON, center: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.center = center

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates one scale and one offset a channel."""
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(shape=shape, initializer="ones", autocast=False, name="gamma")
        self.beta = None
        if self.center:
            self.beta = self.add_weight(shape=shape, initializer="zeros", autocast=False, name="beta")

    def call(self, inputs: Any) -> Any:
        """Normalises `inputs` [B, H, W, C]."""
        wide = keras.backend.result_type(self.compute_dtype, "float32")
        x = ops.cast(inputs, wide)  # statistics over H·W pixels overflow in half precision
        pixels = ops.cast(ops.shape(x)[1] * ops.shape(x)[2], wide)
        centered = x - ops.mean(x, axis=(1, 2), keepdims=True)  # [B, H, W, C]
        variance = ops.sum(ops.square(centered), axis=(1, 2), keepdims=True) / ops.maximum(pixels - 1.0, 1.0)
        std = ops.sqrt(ops.maximum(variance, keras.config.epsilon() ** 2))  # the root has no gradient at zero
        y = self.gamma * centered / ops.sqrt(std + self.epsilon)
        y = y if self.beta is None else y + self.beta
        return ops.cast(y, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this layer again."""
        return {**super().get_config(), "epsilon": self.epsilon, "center": self.center}


@keras.saving.register_keras_serializable(package="segdec")
class GradientGate(keras.layers.Layer):
    """Passes its input on and lets no gradient back.

    Input shape:
        Any.

    Output shape:
        That of the input.
    """

    def call(self, inputs: Any) -> Any:
        """Returns `inputs`, cut from the gradient."""
        return ops.stop_gradient(inputs)


def normalization(config: NetworkConfig, *, center: bool = True, **kwargs: Any) -> keras.layers.Layer:
    """The normalisation layer that `config` names, with or without its offset."""
    if config.normalization == "batch":
        return ReplicaBatchNormalization(
            momentum=config.batch_norm_momentum,
            epsilon=EPSILON,
            center=center,
            **kwargs,
        )
    if config.normalization == "instance":
        return keras.layers.GroupNormalization(groups=-1, epsilon=EPSILON, center=center, **kwargs)
    return FeatureNormalization(epsilon=EPSILON, center=center, **kwargs)
