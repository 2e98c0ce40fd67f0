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

CHANNELS_SHARE, MIN_WIDTH, MAX_WIDTH = 1 / 8, 96, 256
"""Numbers that describe a patch after the projection, per channel of the features, and their limits."""

MIN_DISTANCE = 1e-3
"""Lower limit of a distance, for its logarithm."""

POSITIONS = 64
"""Rows and columns of the grids, stretched to the image, on which the usual distances are stored."""

PATCHES_AT_ONCE = 1000
"""Remembered patches that are compared at once: the products take four bytes for each cell and patch."""

EPSILON = 1e-6

UNCHANGED: dict[str, Any] = {"trainable": False, "autocast": False}
"""Settings of weights that no training changes."""

MEMORY = "memory"
"""Name of the part of the segmentation that remembers good surface."""

PATCHES, MEAN, NEAREST, DEVIATION = "patches", "mean_patch", "nearest_patch", "deviation"
"""Names of layers: the patches, from `patches_8` and `patches_16`; their mean; the distances; the logits."""

SMOOTHED = ("smoothed_1", "smoothed_2")
"""Names of the layers that smooth the distances."""


def build_memory(features: dict[str, Any], config: NetworkConfig, *, folded: bool) -> keras.Model:
    """Builds a model: the encoder's features by name → logits [B, H/8, W/8, 1], high on unknown surface, and
    the mean patch [B, width], which describes the whole photograph.

    They are computed in float32, since differences of large numbers decide. If `folded`, it has no patches
    for folds.
    """
    exact = keras.config.floatx()
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
    mean = layers.GlobalAveragePooling2D(dtype=exact, name=MEAN)(x)
    x = NearestPatch(config.memory, 0 if folded else config.folds, dtype=exact, name=NEAREST)(x)
    for name in SMOOTHED:
        x = layers.AveragePooling2D(SMOOTHING, 1, padding="same", dtype=exact, name=name)(x)
    return keras.Model(features, (Deviation(dtype=exact, name=DEVIATION)(x), mean), name=MEMORY)


def distances_without_fold(memory: keras.Model, fold: int) -> keras.Model:
    """Returns a model: patches [B, h, w, D] → smoothed logarithms of distances [B, h, w, 1].

    They are distances to the patches that were chosen without a fold, from 0.
    """
    patches = memory.get_layer(PATCHES).output
    distances = memory.get_layer(NEAREST)(patches, without=fold)
    for name in SMOOTHED:
        distances = memory.get_layer(name)(distances)
    return keras.Model(patches, distances)


def without_fold(memory: keras.Model, fold: int) -> keras.Model:
    """Returns the model of `build_memory` with the patches without a fold; it shares the weights."""
    distances = distances_without_fold(memory, fold)(memory.get_layer(PATCHES).output)
    return keras.Model(memory.input, (memory.get_layer(DEVIATION)(distances), memory.get_layer(MEAN).output))


def highest_logit(logits: Any) -> Any:
    """Returns the highest of the memory's logits [B, h, w, 1] as class logits [B, 2]."""
    exact = keras.config.floatx()
    highest = layers.GlobalMaxPooling2D(dtype=exact, name="memory_max")(logits)
    return TwoClassLogits(dtype=exact, name="class_logits")(highest)


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
        # A convolution, since OpenVINO would compute a mean, and all layers before it, in float32.
        channels = x.shape[-1]
        mean_square = _product(ops.square(x), np.full((channels, 1), 1.0 / channels, np.float32))
        return _product(x, self.kernel) * ops.rsqrt(mean_square + EPSILON) + self.bias

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "width": self.width}


@keras.saving.register_keras_serializable(package="segdec")
class NearestPatch(keras.layers.Layer):
    """Returns the logarithm of the distance to the nearest of `size` patches: [B, H, W, C] → [B, H, W, 1].

    The squared distance is |x|² − max(2 x·m − |m|²) over the patches m: matrix products. For training
    there are also as many patches for each of `folds`, chosen without its photographs; the call argument
    `without`, from 0, selects them.
    """

    def __init__(self, size: int, folds: int, **kwargs: Any) -> None:
        super().__init__(trainable=False, **kwargs)
        self.size, self.folds = size, folds

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.memories = []
        for end in ("", *(f"_without_{fold}" for fold in range(1, self.folds + 1))):
            shape = (input_shape[-1], self.size)
            kernel = self.add_weight(shape, "random_normal", name=f"kernel{end}", **UNCHANGED)
            bias = self.add_weight(shape[1:], "zeros", name=f"bias{end}", **UNCHANGED)
            self.memories.append((kernel, bias))

    def set_patches(self, patches: NDArray[np.float32], without: int | None = None) -> None:
        """Sets the remembered patches [size, C]."""
        kernel, bias = self._select(without)
        kernel.assign(2.0 * patches.T)
        bias.assign(-np.square(patches).sum(axis=1))

    def call(self, inputs: Any, without: int | None = None) -> Any:
        x = ops.cast(inputs, self.compute_dtype)
        kernel, bias = self._select(without)
        nearest = None
        for start in range(0, self.size, PATCHES_AT_ONCE):
            part = slice(start, start + PATCHES_AT_ONCE)
            found = ops.max(_product(x, kernel[:, part]) + bias[part], axis=-1, keepdims=True)
            nearest = found if nearest is None else ops.maximum(nearest, found)
        squared = ops.sum(ops.square(x), axis=-1, keepdims=True) - nearest
        return 0.5 * ops.log(ops.maximum(squared, MIN_DISTANCE**2))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "size": self.size, "folds": self.folds}

    def _select(self, without: int | None) -> tuple[Any, Any]:
        return self.memories[0 if without is None else without + 1]


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
