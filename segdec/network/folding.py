"""The network as it is served: what is linear beside a convolution is part of its weights."""

from collections.abc import Callable
from functools import partial

import keras
import numpy as np
from keras import layers
from numpy.typing import NDArray

from segdec.encoders import ENCODERS, Encoder
from segdec.network.convolution import normalized_convolutions
from segdec.network.fourier import MIN_SAVING
from segdec.network.fourier_convolution import FourierConv2D
from segdec.network.layers import ComputePolicy, all_layers
from segdec.network.network import PIXEL_SCALE, SegDecNet, build_network

Weights = NDArray[np.float32]
Change = Callable[[Weights], Weights]

FIRST = "segmentation_1_1"
"""The convolution that sees the pixels, where there is no encoder."""


def fold_network(network: SegDecNet, dtype: str | None = None) -> SegDecNet:
    """Makes a network with the same answers in inference and fewer operations.

    Args:
        network: Trained; stays as it is.
        dtype: Keras dtype policy in which the other one computes, see `ComputePolicy`.
    """
    served = build_network(network.config, ComputePolicy(dtype=dtype, folded=True))
    first = _first_kernel(served)
    _copy_weights(network.segmentation, served.segmentation, first)
    _copy_weights(network.decision, served.decision, first)
    return served


def fourier_layers(network: SegDecNet, worthwhile: float = MIN_SAVING) -> list[FourierConv2D]:
    """Finds the convolutions that transforms save so many times their multiplications or more."""
    return [
        layer
        for layer in all_layers(network)
        if isinstance(layer, FourierConv2D) and layer.saving >= worthwhile
    ]


def _first_kernel(served: SegDecNet) -> tuple[str, Change]:
    """Name of the convolution that sees the pixels, and how its kernel takes over what was done to them."""
    if served.backbone is None:
        return FIRST, lambda kernel: kernel * np.float32(PIXEL_SCALE)
    first = next(layer for layer in served.backbone.layers if isinstance(layer, layers.Conv2D))
    row, channels = ENCODERS[served.config.encoder], first.kernel.shape[2]
    return first.name, partial(_take_over_pixels, row=row, channels=channels)


def _take_over_pixels(kernel: Weights, row: Encoder, channels: int) -> Weights:
    """The kernel [k, k, 3, D] of what an encoder expects → [k, k, C, D] of pixels 0…255 less their mean."""
    kernel = kernel[:, :, ::-1] if row.blue_first else kernel
    kernel = kernel / np.asarray(row.deviation, np.float32)[:, None]
    return kernel if channels == kernel.shape[2] else kernel.sum(axis=2, keepdims=True)


def _copy_weights(trained: keras.Model, served: keras.Model, first: tuple[str, Change]) -> None:
    origin = {layer.name: layer for layer in trained.layers}
    norms, kept = normalized_convolutions(trained), {layer.name for layer in served.layers}
    for layer in served.layers:
        if not layer.weights:
            continue
        before = origin[layer.name]
        if isinstance(layer, keras.Model):
            _copy_weights(before, layer, first)
            continue
        weights, norm = before.get_weights(), norms.get(layer.name)
        if layer.name == first[0]:
            weights[0] = first[1](weights[0])
        if norm is not None and norm not in kept:
            weights = _fold(before, weights, origin[norm])
        for variable, value in zip(layer.weights, weights, strict=True):
            variable.assign(value.reshape(variable.shape))  # a dense kernel [C, D] becomes one [1, 1, C, D]


def _fold(
    convolution: keras.layers.Layer, weights: list[Weights], scaling: keras.layers.Layer
) -> list[Weights]:
    """The kernel and the bias [D] that do what the convolution and what scales its channels did.

    The kernel is [k, k, C, D], [C, D] of a dense layer, or [k, k, D, 1] of a convolution of each channel for
    itself.
    """
    kernel, *bias = weights
    scale, offset = _scale_and_offset(scaling)
    by_kernel = scale[:, None] if isinstance(convolution, layers.DepthwiseConv2D) else scale
    return [(kernel * by_kernel).astype(np.float32), (offset + sum(bias) * scale).astype(np.float32)]


def _scale_and_offset(layer: keras.layers.Layer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a layer multiplies channels with and then adds, [D] each."""
    gamma, *others = (np.asarray(weight, np.float64) for weight in layer.get_weights())
    if not isinstance(layer, layers.BatchNormalization):
        return gamma, np.zeros_like(gamma)
    beta, mean, variance = others
    scale = gamma / np.sqrt(variance + layer.epsilon)
    return scale, beta - mean * scale
