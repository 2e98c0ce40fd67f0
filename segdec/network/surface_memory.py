"""Memory of good surface: the distance of each patch to the nearest remembered good patch.

In the manner of PatchCore (Roth et al., "Towards total recall in industrial anomaly detection", 2022).
Nothing here is trained: `training.memory_building` sets the weights from good photographs.
"""

from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from segdec.config import SMOOTHING, STRIDE, NetworkConfig
from segdec.network.encoder import CropToStride
from segdec.network.layers import BilinearUpsampling

PATCH_STRIDES = (8, 16)
"""Strides of the features that describe a patch."""

CHANNELS_SHARE, MIN_WIDTH, MAX_WIDTH = 1 / 6, 96, 256
"""Numbers that describe a patch after the projection, per channel of the features, and their limits."""

MIN_DISTANCE = 1e-3
"""Lower limit of a distance, for its logarithm."""

POSITIONS = 64
"""Rows and columns of the grids, stretched to the image, on which the usual distances are stored."""

EPSILON = 1e-6

UNCHANGED: dict[str, Any] = {"trainable": False, "autocast": False}
"""Settings of weights that no training changes."""

PATCHES, NEAREST, SMOOTHED, DEVIATION = "patches", "nearest_patch", "smoothed_2", "deviation"
"""Names of layers: the patches, from `patches_8` and `patches_16`; the memory; the distances; the logits."""


def build_memory_head(encoder: keras.Model, config: NetworkConfig) -> keras.Model:
    """Builds a model: the encoder's features by name → features, coarse and final mask logits.

    It takes the place of the trained head. All three outputs are the mask logits [B, H/8, W/8, 1]. They are
    computed in float32, since differences of large numbers decide.
    """
    exact = keras.config.floatx()
    features = {
        name: keras.Input(one.shape[1:], dtype=one.dtype, name=name) for name, one in encoder.output.items()
    }
    channels = sum(features[f"joined_{stride}"].shape[-1] for stride in PATCH_STRIDES)
    width = min(max(round(CHANNELS_SHARE * channels), MIN_WIDTH), MAX_WIDTH)
    patches: list[Any] = []
    for stride in PATCH_STRIDES:
        project = PatchProjection(width, dtype=exact, name=f"{PATCHES}_{stride}")
        x = project(features[f"joined_{stride}"])
        if stride > STRIDE:
            x = BilinearUpsampling(stride // STRIDE, dtype=exact, name=f"enlarged_{stride}")(x)
            x = CropToStride(1, dtype=exact, name=f"cut_{stride}")([x, patches[0]])
        patches.append(x)
    x = layers.Add(dtype=exact, name=PATCHES)(patches)  # [B, H/8, W/8, width]
    x = NearestPatch(config.memory, dtype=exact, name=NEAREST)(x)
    for step in (1, 2):
        x = layers.AveragePooling2D(SMOOTHING, 1, padding="same", dtype=exact, name=f"smoothed_{step}")(x)
    logits = Deviation(dtype=exact, name=DEVIATION)(x)
    return keras.Model(features, (logits, logits, logits), name="head")


def build_memory_decision() -> keras.Model:
    """Builds a model: features (not used) and mask logits [B, h, w, 1] → class logits [B, 2].

    The log-odds of a defect are the highest mask logit.
    """
    exact = keras.config.floatx()
    features, mask_logits = (
        keras.Input((None, None, 1), dtype=exact, name=name) for name in ("features", "mask_logits")
    )
    highest = layers.GlobalMaxPooling2D(dtype=exact, name="mask_max")(mask_logits)
    class_logits = TwoClassLogits(dtype=exact, name="class_logits")(highest)
    return keras.Model((features, mask_logits), class_logits, name="decision")


@keras.saving.register_keras_serializable(package="segdec")
class PatchProjection(keras.layers.Layer):
    """Scales the features of each pixel to a mean square of 1 and projects them: [B, H, W, C] → [B, H, W, D].

    `bias` is added afterwards; it moves the patches to the origin, where rounding errors are smallest.
    """

    def __init__(self, width: int, **kwargs: Any) -> None:
        super().__init__(trainable=False, **kwargs)
        self.width = width

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.kernel = self.add_weight(
            (input_shape[-1], self.width), "random_normal", name="kernel", **UNCHANGED
        )
        self.bias = self.add_weight((self.width,), "zeros", name="bias", **UNCHANGED)

    def call(self, inputs: Any) -> Any:
        x = ops.cast(inputs, self.compute_dtype)
        mean_square = ops.mean(ops.square(x), axis=-1, keepdims=True)
        return _product(x, self.kernel) * ops.rsqrt(mean_square + EPSILON) + self.bias

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "width": self.width}


@keras.saving.register_keras_serializable(package="segdec")
class NearestPatch(keras.layers.Layer):
    """Returns the logarithm of the distance to the nearest of `size` patches: [B, H, W, C] → [B, H, W, 1].

    The squared distance is |x|² − max(2 x·m − |m|²) over the patches m: one matrix product.
    """

    def __init__(self, size: int, **kwargs: Any) -> None:
        super().__init__(trainable=False, **kwargs)
        self.size = size

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.kernel = self.add_weight(
            (input_shape[-1], self.size), "random_normal", name="kernel", **UNCHANGED
        )
        self.bias = self.add_weight((self.size,), "zeros", name="bias", **UNCHANGED)

    def set_patches(self, patches: NDArray[np.float32]) -> None:
        """Sets the remembered patches [size, C]."""
        self.kernel.assign(2.0 * patches.T)
        self.bias.assign(-np.square(patches).sum(axis=1))

    def call(self, inputs: Any) -> Any:
        x = ops.cast(inputs, self.compute_dtype)
        nearest = ops.max(_product(x, self.kernel) + self.bias, axis=-1, keepdims=True)
        squared = ops.sum(ops.square(x), axis=-1, keepdims=True) - nearest
        return 0.5 * ops.log(ops.maximum(squared, MIN_DISTANCE**2))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "size": self.size}


@keras.saving.register_keras_serializable(package="segdec")
class Deviation(keras.layers.Layer):
    """Converts logarithms of distances [B, H, W, 1] to logits: how far they exceed the usual ones.

    `y = (x − usual) / spread − bias`. `usual` and `spread` are grids [POSITIONS, POSITIONS], stretched to the
    image by nearest neighbour, so that any input size is possible; `bias` is a number.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trainable=False, **kwargs)

    def build(self, input_shape: tuple[int | None, ...]) -> None:  # noqa: ARG002
        grid = (POSITIONS, POSITIONS)
        self.usual = self.add_weight(grid, "zeros", name="usual", **UNCHANGED)
        self.spread = self.add_weight(grid, "ones", name="spread", **UNCHANGED)
        self.bias = self.add_weight((), "zeros", name="bias", **UNCHANGED)

    def call(self, inputs: Any) -> Any:
        height, width = ops.shape(inputs)[1:3]
        grids = ops.stack([self.usual, self.spread], axis=-1)
        grids = ops.take(grids, ops.arange(height) * POSITIONS // height, axis=0)
        grids = ops.take(grids, ops.arange(width) * POSITIONS // width, axis=1)  # [H, W, 2]
        return (inputs - grids[:, :, :1]) / grids[:, :, 1:] - self.bias


def _product(x: Any, kernel: Any) -> Any:
    """Returns the matrix product of each pixel: [B, H, W, C], [C, D] → [B, H, W, D]."""
    return ops.conv(x, kernel[None, None])


@keras.saving.register_keras_serializable(package="segdec")
class TwoClassLogits(keras.layers.Layer):
    """Converts log-odds to logits of two classes: [B, 1] → [B, 2], the first of them 0."""

    def call(self, inputs: Any) -> Any:
        return ops.pad(inputs, [[0, 0], [1, 0]])
