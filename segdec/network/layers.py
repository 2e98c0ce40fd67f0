"""Layers that Keras does not have, and the choice of the normalisation."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from segdec.config import NetworkConfig

EPSILON = 1e-3


@dataclass(frozen=True)
class ComputePolicy:
    """How a network computes; its weights do not depend on it.

    Attributes:
        dtype: Keras dtype policy of all layers except the first and the last; None: Keras' default.
        synchronized: Whether batch normalisation uses the statistics of all replicas.
        folded: Whether pixel scaling and batch normalisation are folded into the convolutions; only for
            inference.
    """

    dtype: str | None = None
    synchronized: bool = False
    folded: bool = False


DEFAULT_POLICY = ComputePolicy()

_present: ContextVar[Any] = ContextVar("present", default=1.0)


@contextmanager
def ignore_dummy_images(present: Any) -> Iterator[None]:
    """Makes batch normalisation inside the block ignore dummy images: `present` is 0 on their replica.

    Convolutions and poolings fail without an image (with oneDNN they return wrong shapes or end the process),
    so a replica without images gets a dummy image that must not affect the statistics.
    """
    token = _present.set(present)
    try:
        yield
    finally:
        _present.reset(token)


@keras.saving.register_keras_serializable(package="segdec")
class ReplicaBatchNormalization(keras.layers.BatchNormalization):
    """Batch normalisation of [B, H, W, C] that gives the same result with `tf.distribute` as on one device.

    The moving statistics are averaged over the replicas; Keras keeps a separate copy on each and saves the
    first. With `synchronized=True` the forward pass and its gradient use the statistics of the global batch:
    replicas exchange count, mean and variance with one all-reduce per layer (Keras needs three) and combine
    them by the formula for parallel variances. Unlike Keras' E[x²] − E[x]² it is exact for large means. A
    replica with dummy images (see `ignore_dummy_images`) is then ignored.

    Reference:
        Chan et al., "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    """

    def add_weight(self, *args: Any, trainable: bool = True, **kwargs: Any) -> Any:
        if not trainable:  # moving statistics
            kwargs["aggregation"] = "mean"
        return super().add_weight(*args, trainable=trainable, **kwargs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if not (training and self.trainable):
            return super().call(inputs, training=False, mask=mask)
        x = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
        mean, variance = self._statistics(x)
        for moving, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(moving * self.momentum + value * (1.0 - self.momentum))
        y = ops.batch_normalization(
            x, mean, variance, axis=-1, offset=self.beta, scale=self.gamma, epsilon=self.epsilon
        )
        return ops.cast(y, self.compute_dtype)

    def _statistics(self, x: Any) -> tuple[Any, Any]:
        """Returns mean and variance [C] of the batch, or the moving ones if it has no image."""
        count = ops.cast(ops.prod(ops.shape(x)[:-1]), x.dtype) * ops.cast(_present.get(), x.dtype)
        mean, variance = ops.moments(x, axes=(0, 1, 2))
        if self.synchronized:
            count, mean, variance = _combine(_gather(count, mean, variance))
        moving = (ops.cast(one, x.dtype) for one in (self.moving_mean, self.moving_variance))
        mean, variance = (ops.where(count > 0, *pair) for pair in zip((mean, variance), moving, strict=True))
        return mean, variance


def _gather(count: Any, mean: Any, variance: Any) -> Any:
    """Returns `count, mean, variance` of each replica, [replicas, 2 · C + 1]; zeros for empty ones."""
    import tensorflow as tf

    row = ops.concatenate([ops.reshape(count, (1,)), mean, variance])
    row = ops.where(count > 0, row, ops.zeros_like(row))
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return row[None]
    place = tf.one_hot(replica.replica_id_in_sync_group, replica.num_replicas_in_sync, dtype=row.dtype)
    return _fill_rows(place[:, None] * row[None])


def _fill_rows(own: Any) -> Any:
    """Sums over the replicas, each of which has one row and zeros elsewhere.

    It equals `ReplicaContext.all_reduce` with its gradient, but traces faster: that wraps the sum in
    `tf.custom_gradient`, which searches the graphs of all replicas for variables. Here only an identity is
    wrapped; own + (sum − own) is exactly the sum, because one of the two is 0 in each row.
    """
    import tensorflow as tf

    @tf.custom_gradient
    def mark(x: Any) -> tuple[Any, Any]:
        return tf.identity(x), _sum_over_replicas

    own = mark(own)
    return own + tf.stop_gradient(_sum_over_replicas(own) - own)


def _sum_over_replicas(value: Any) -> Any:
    import tensorflow as tf

    def merge(strategy: Any, merged: Any) -> Any:
        return strategy.extended.batch_reduce_to("SUM", [(merged, merged)])[0]

    return tf.distribute.get_replica_context().merge_call(merge, args=(value,))


def _combine(rows: Any) -> tuple[Any, Any, Any]:
    """Combines count, mean and variance of the replicas."""
    channels = (rows.shape[1] - 1) // 2
    counts, means, variances = rows[:, :1], rows[:, 1 : channels + 1], rows[:, channels + 1 :]
    count = ops.sum(counts)
    shares = counts / ops.maximum(count, 1.0)  # [replicas, 1]
    mean = ops.sum(shares * means, axis=0)
    return count, mean, ops.sum(shares * (variances + ops.square(means - mean)), axis=0)


@keras.saving.register_keras_serializable(package="segdec")
class InstanceNormalization(keras.layers.GroupNormalization):
    """Normalises each channel of each image [B, H, W, C]; used for serving.

    Keras' own layer reshapes to five axes and is slow in every engine. Here mean and variance are computed
    over height and width, which is cheap, and which OpenVINO fuses to one operation (`MVN`).
    """

    def __init__(self, groups: int = -1, **kwargs: Any) -> None:
        super().__init__(groups=groups, **kwargs)

    def call(self, inputs: Any) -> Any:
        x = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
        centered = x - ops.mean(x, axis=(1, 2), keepdims=True)
        variance = ops.mean(ops.square(centered), axis=(1, 2), keepdims=True)  # [B, 1, 1, C]
        y = centered / ops.sqrt(variance + self.epsilon)
        y = y if self.gamma is None else y * self.gamma
        y = y if self.beta is None else y + self.beta
        return ops.cast(y, self.compute_dtype)


@keras.saving.register_keras_serializable(package="segdec")
class FeatureNormalization(keras.layers.Layer):
    """Normalises each channel of each image [B, H, W, C] by the root of its standard deviation.

    `y = gamma · (x − mean) / sqrt(std + epsilon) + beta`, mean and unbiased std over height and width, `beta`
    only with `center`. As in the paper's network, the root is that of the *standard deviation*.

    Reference:
        Božič et al., "Mixed supervision for surface-defect detection", Computers in Industry 2021.
    """

    def __init__(self, epsilon: float = EPSILON, center: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.center = center

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(shape=shape, initializer="ones", autocast=False, name="gamma")
        self.beta = None
        if self.center:
            self.beta = self.add_weight(shape=shape, initializer="zeros", autocast=False, name="beta")

    def call(self, inputs: Any) -> Any:
        wide = keras.backend.result_type(self.compute_dtype, "float32")
        x = ops.cast(inputs, wide)  # sums over H·W pixels overflow in half precision
        pixels = ops.cast(ops.shape(x)[1] * ops.shape(x)[2], wide)
        centered = x - ops.mean(x, axis=(1, 2), keepdims=True)  # [B, H, W, C]
        variance = ops.sum(ops.square(centered), axis=(1, 2), keepdims=True) / ops.maximum(pixels - 1.0, 1.0)
        # The square root has no gradient at zero.
        std = ops.sqrt(ops.maximum(variance, keras.config.epsilon() ** 2))
        y = self.gamma * centered / ops.sqrt(std + self.epsilon)
        y = y if self.beta is None else y + self.beta
        return ops.cast(y, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon, "center": self.center}


@keras.saving.register_keras_serializable(package="segdec")
class GradientGate(keras.layers.Layer):
    """Returns its input and stops its gradient."""

    def call(self, inputs: Any) -> Any:
        return ops.stop_gradient(inputs)


@keras.saving.register_keras_serializable(package="segdec")
class ChannelMaximum(keras.layers.Layer):
    """Returns the maximum over the channels of each pixel: [B, H, W, C] → [B, H, W, 1]."""

    def call(self, inputs: Any) -> Any:
        return ops.max(inputs, axis=-1, keepdims=True)


@keras.saving.register_keras_serializable(package="segdec")
class DefectAndClass(keras.layers.Layer):
    """Combines the logit of a defect and the logits of its class to log-probabilities: [B, C] → [B, C].

    Input 0 is the log-odds of a defect, whatever its class; the others are the logits of the C − 1 defect
    classes. Output 0 is log P(good).
    """

    def call(self, inputs: Any) -> Any:
        defect, classes = inputs[:, :1], inputs[:, 1:]
        of_class = ops.log_softmax(classes, axis=-1) - ops.softplus(-defect)
        return ops.concatenate([-ops.softplus(defect), of_class], axis=-1)


@keras.saving.register_keras_serializable(package="segdec")
class BilinearUpsampling(keras.layers.Layer):
    """Upsamples [B, H, W, C] to [B, H · factor, W · factor, C] as `cv2.resize` with `INTER_LINEAR`.

    Keras' own layer and operation cannot be traced for variable sizes.
    """

    def __init__(self, factor: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, inputs: Any) -> Any:
        import tensorflow as tf

        sides = tf.shape(inputs)[1:3] * self.factor
        return ops.cast(tf.image.resize(inputs, sides), self.compute_dtype)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        batch, *sides, channels = input_shape
        return (batch, *(side and side * self.factor for side in sides), channels)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "factor": self.factor}


def normalization(
    config: NetworkConfig, *, center: bool = True, policy: ComputePolicy = DEFAULT_POLICY, **kwargs: Any
) -> keras.layers.Layer:
    """Returns the normalisation layer that `config` selects, with or without offset."""
    common = {"epsilon": EPSILON, "center": center, "dtype": policy.dtype, **kwargs}
    if config.normalization == "batch":
        momentum, synchronized = config.batch_norm_momentum, policy.synchronized
        return ReplicaBatchNormalization(momentum=momentum, synchronized=synchronized, **common)
    if config.normalization == "instance":
        kind = InstanceNormalization if policy.folded else keras.layers.GroupNormalization
        return kind(groups=-1, **common)
    return FeatureNormalization(**common)


def standardization(
    config: NetworkConfig, *, policy: ComputePolicy = DEFAULT_POLICY, **kwargs: Any
) -> keras.layers.Layer:
    """Returns a layer that gives each channel a mean of 0 and a deviation of 1: batch normalisation alone."""
    return ReplicaBatchNormalization(
        momentum=config.batch_norm_momentum,
        synchronized=policy.synchronized,
        epsilon=EPSILON,
        center=False,
        scale=False,
        dtype=policy.dtype,
        **kwargs,
    )


def all_layers(model: keras.Model) -> Iterator[keras.layers.Layer]:
    """Yields the layers of a model, including those of nested models."""
    for layer in model.layers:
        yield from all_layers(layer) if isinstance(layer, keras.Model) else (layer,)
