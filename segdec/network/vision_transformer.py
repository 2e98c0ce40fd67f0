"""The vision transformer of DINOv2, as encoder of photographs of any size.

The network is that of Dosovitskiy et al., "An image is worth 16x16 words", 2021, with the scaled residual
branches of Oquab et al., "DINOv2: Learning robust visual features without supervision", 2023. It was trained
on patches of 14 × 14 px; here a patch is one cell of the encoder's stride 16, see `resize_patch_kernel`.
"""

from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from segdec.encoders import ENCODER_STRIDE, JOINED_STRIDES
from segdec.network.layers import BilinearUpsampling

PATCH = 14
"""Side of a patch in training, px."""

EXPANSION = 4
"""Channels of a block's hidden dense layer per channel of a token."""

EPSILON = 1e-6

CUBIC = -0.75
"""Parameter of the cubic convolution with which position embeddings are resized, as in PyTorch."""


def build_vision_transformer(width: int, depth: int, heads: int, grid: int) -> keras.Model:
    """Builds the network: image [B, H, W, 3] → maps [B, H/s, W/s, width] of the strides s = 4, 8 and 16.

    H and W must be divisible by 16. All maps have one vector for a patch: those of the strides 4 and 8, after
    a third and two thirds of the blocks, are upsampled; that of stride 16 is the normalised output. Tokens
    are [B, 1, 1 + patches, width], with the class token first; with four axes, dense layers can become 1×1
    convolutions for serving. `width` is the number of channels of a token, `depth` that of blocks, `grid`
    that of patches along each side of the image for which position embeddings were trained.
    """
    image = keras.Input((None, None, 3), name="image")
    patches = layers.Conv2D(width, ENCODER_STRIDE, ENCODER_STRIDE, name="patch_embedding")(image)
    x = PositionEmbedding(grid, name="position_embedding")(patches)
    after = []
    for number in range(depth):
        x = _block(x, f"block_{number}", heads)
        after.append(x)
    after[-1] = layers.LayerNormalization(epsilon=EPSILON, name="norm")(x)
    maps = []
    for part, stride in enumerate(JOINED_STRIDES, start=1):
        tokens = after[-(-depth * part // len(JOINED_STRIDES)) - 1]
        patch_map = PatchMap(name=f"patch_map_{stride}")([tokens, patches])
        if stride < ENCODER_STRIDE:
            upsample = BilinearUpsampling(ENCODER_STRIDE // stride, name=f"upsampled_{stride}")
            patch_map = upsample(patch_map)
        maps.append(patch_map)
    return keras.Model(image, maps, name="vision_transformer")


def _block(x: Any, name: str, heads: int) -> Any:
    """Applies self-attention and two dense layers, each added to its input: [B, 1, N, C] → [B, 1, N, C]."""
    width = x.shape[-1]
    y = layers.LayerNormalization(epsilon=EPSILON, name=f"{name}_norm1")(x)
    y = layers.Dense(3 * width, name=f"{name}_qkv")(y)
    y = SelfAttention(heads, name=f"{name}_attention")(y)
    y = layers.Dense(width, name=f"{name}_proj")(y)
    x = layers.Add(name=f"{name}_add1")([x, y])
    y = layers.LayerNormalization(epsilon=EPSILON, name=f"{name}_norm2")(x)
    y = layers.Dense(EXPANSION * width, activation="gelu", name=f"{name}_fc1")(y)
    y = layers.Dense(width, name=f"{name}_fc2")(y)
    return layers.Add(name=f"{name}_add2")([x, y])


def resize_patch_kernel(kernel: NDArray[np.float32]) -> NDArray[np.float32]:
    """Converts the kernel [14, 14, 3, D] of a patch to one [16, 16, 3, D] for a cell of stride 16.

    It gives the same embedding as the kernel after a bilinear resize of the image by 14 / 16, which mixes no
    pixels of different cells.
    """
    centres = (np.arange(PATCH) + 0.5) * ENCODER_STRIDE / PATCH - 0.5
    resize = np.maximum(0.0, 1.0 - np.abs(centres[:, None] - np.arange(ENCODER_STRIDE)))  # [14, 16]
    resized: NDArray[np.float32] = np.einsum("ia,jb,ijcd->abcd", resize, resize, kernel).astype(np.float32)
    return resized


@keras.saving.register_keras_serializable(package="segdec")
class PositionEmbedding(keras.layers.Layer):
    """Adds position embeddings to patches and puts the class token first: [B, h, w, C] → [B, 1, 1 + h·w, C].

    The embeddings [grid, grid, C] are resized to [h, w, C] by cubic convolution (Keys 1981); `class_token`
    [1, C] includes its own position embedding.
    """

    def __init__(self, grid: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.grid = grid

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        # Without autocast, because positions in half precision are wrong by whole patches.
        common = {"initializer": "random_normal", "autocast": False}
        channels = input_shape[-1]
        self.positions = self.add_weight((self.grid, self.grid, channels), name="positions", **common)
        self.class_token = self.add_weight((1, channels), name="class_token", **common)

    def call(self, inputs: Any) -> Any:
        batch, height, width, channels = ops.shape(inputs)
        rows, columns = self._resize_matrix(height), self._resize_matrix(width)
        flat = ops.reshape(self.positions, (self.grid, self.grid * channels))
        x = ops.reshape(ops.matmul(rows, flat), (height, self.grid, channels))
        x = ops.reshape(ops.matmul(columns, x), (height * width, channels))
        added = ops.cast(ops.concatenate([self.class_token, x], axis=0), self.compute_dtype)
        patches = ops.reshape(inputs, (batch, 1, height * width, channels))
        return ops.pad(patches, [[0, 0], [0, 0], [1, 0], [0, 0]]) + added

    def _resize_matrix(self, size: Any) -> Any:
        """Returns the matrix [size, grid] that resizes one axis; embeddings at the border are repeated."""
        dtype = self.variable_dtype
        centres = (ops.cast(ops.arange(size), dtype) + 0.5) * (self.grid / ops.cast(size, dtype)) - 0.5
        neighbours = np.arange(-2, self.grid + 2)
        offset = centres[:, None] - ops.convert_to_tensor(neighbours, dtype)
        distance = ops.maximum(offset, -offset)
        near = ops.relu(1.0 - distance)  # 1 − distance up to 1, then 0
        far = ops.relu(2.0 - distance) - near  # 2 − distance from 1 to 2; 1 before, 0 after
        inner = 1.0 - near
        weights = near * (1.0 + inner - (CUBIC + 2.0) * inner * inner) + CUBIC * (1.0 - far) * far * far
        repeated = np.eye(self.grid)[np.clip(neighbours, 0, self.grid - 1)]
        return ops.matmul(weights, ops.convert_to_tensor(repeated, dtype))

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        batch, height, width, channels = input_shape
        return (batch, 1, height and width and 1 + height * width, channels)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "grid": self.grid}


@keras.saving.register_keras_serializable(package="segdec")
class SelfAttention(keras.layers.Layer):
    """Scaled dot-product attention: queries, keys and values [B, 1, N, 3·C] → [B, 1, N, C].

    Each of the `heads` has C / heads channels.
    """

    def __init__(self, heads: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.heads = heads

    def call(self, inputs: Any) -> Any:
        batch, _, tokens, channels = ops.shape(inputs)
        side = channels // (3 * self.heads)
        x = ops.reshape(inputs, (batch, tokens, 3, self.heads, side))
        x = ops.transpose(x, (2, 0, 3, 1, 4))  # [3, B, heads, N, side]
        queries, keys, values = x[0] * side**-0.5, x[1], x[2]
        weights = ops.matmul(queries, ops.transpose(keys, (0, 1, 3, 2)))  # [B, heads, N, N]
        wide = keras.backend.result_type(weights.dtype, "float32")  # sums over N tokens
        weights = ops.cast(ops.softmax(ops.cast(weights, wide), axis=-1), self.compute_dtype)
        x = ops.transpose(ops.matmul(weights, values), (0, 2, 1, 3))  # [B, N, heads, side]
        return ops.reshape(x, (batch, 1, tokens, channels // 3))

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        *others, channels = input_shape
        return (*others, channels and channels // 3)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "heads": self.heads}


@keras.saving.register_keras_serializable(package="segdec")
class PatchMap(keras.layers.Layer):
    """Drops the class token: tokens [B, 1, 1 + h·w, C], patches [B, h, w, C] → tokens as [B, h, w, C]."""

    def call(self, inputs: list[Any]) -> Any:
        tokens, patches = inputs
        return ops.reshape(tokens[:, :, 1:], ops.shape(patches))

    def compute_output_shape(self, input_shape: list[tuple[int | None, ...]]) -> tuple[int | None, ...]:
        return input_shape[1]
