"""EfficientNet-Lite up to stride 16, which `keras.applications` lacks.

EfficientNet (Tan and Le 2019, https://arxiv.org/abs/1905.11946) without squeeze-and-excitation, with ReLU6,
and with the same stem for all sizes.
"""

import math
from typing import Any

import keras
from keras import layers

STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112))
"""Blocks, kernel, stride of the first block, expansion, and channels of each stage up to stride 16."""

STEM_WIDTH = 32
EPSILON = 1e-3


def build_efficientnet_lite(width: float, depth: float) -> keras.Model:
    """Builds the network: image [B, H, W, 3] → features [B, ⌈H/16⌉, ⌈W/16⌉, C].

    Blocks are numbered from 0 without gaps: `block_4_expand_conv`, `block_4_add`. `width` is the factor of
    the channels except the stem's, `depth` that of the blocks of each stage except the first.
    """
    image = keras.Input((None, None, 3), name="image")
    x = layers.Conv2D(STEM_WIDTH, 3, 2, padding="same", use_bias=False, name="stem_conv")(image)
    x, number = _normalize(x, "stem"), 0
    for stage, (blocks, kernel, first_stride, expansion, channels) in enumerate(STAGES):
        for place in range(math.ceil(blocks * depth) if stage else blocks):
            stride = 1 if place else first_stride
            x = _block(x, f"block_{number}", kernel, stride, expansion, _round_width(channels * width))
            number += 1
    return keras.Model(image, x, name="efficientnet_lite")


def _block(x: Any, name: str, kernel: int, stride: int, expansion: int, channels: int) -> Any:
    """Applies an inverted bottleneck: [B, H, W, C] → [B, ⌈H/stride⌉, ⌈W/stride⌉, channels]."""
    inputs, width = x, x.shape[-1]
    if expansion > 1:
        x = layers.Conv2D(width * expansion, 1, use_bias=False, name=f"{name}_expand_conv")(x)
        x = _normalize(x, f"{name}_expand")
    depthwise = {"padding": "same", "use_bias": False, "name": f"{name}_depthwise_conv"}
    x = layers.DepthwiseConv2D(kernel, stride, **depthwise)(x)
    x = _normalize(x, f"{name}_depthwise")
    x = layers.Conv2D(channels, 1, use_bias=False, name=f"{name}_project_conv")(x)
    x = layers.BatchNormalization(epsilon=EPSILON, name=f"{name}_project_bn")(x)
    return layers.Add(name=f"{name}_add")([x, inputs]) if stride == 1 and width == channels else x


def _normalize(x: Any, name: str) -> Any:
    x = layers.BatchNormalization(epsilon=EPSILON, name=f"{name}_bn")(x)
    return layers.ReLU(6.0, name=f"{name}_relu")(x)


def _round_width(width: float) -> int:
    """Rounds to a multiple of 8 that is at least 0.9 of the width."""
    rounded = max(8, int(width + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * width else rounded
