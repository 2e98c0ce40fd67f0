"""The network as it is served: what is linear beside a convolution is part of its weights."""

import keras
import numpy as np
from numpy.typing import NDArray

from segdec.network.convolution import normalized_convolutions
from segdec.network.fourier import WORTHWHILE
from segdec.network.fourier_convolution import FourierConv2D
from segdec.network.layers import ComputePolicy, all_layers
from segdec.network.network import PIXEL_SCALE, SegDecNet, build_network

FIRST = "segmentation_1_1"
"""The convolution that sees the pixels."""


def fold_network(network: SegDecNet, dtype: str | None = None) -> SegDecNet:
    """Makes a network with the same answers in inference and fewer operations.

    Args:
        network: Trained; stays as it is.
        dtype: Keras dtype policy in which the other one computes, see `ComputePolicy`.
    """
    served = build_network(network.config, ComputePolicy(dtype=dtype, folded=True))
    _copy_weights(network.segmentation, served.segmentation)
    _copy_weights(network.decision, served.decision)
    return served


def fourier_layers(network: SegDecNet, worthwhile: float = WORTHWHILE) -> list[FourierConv2D]:
    """Finds the convolutions that transforms save so many times their multiplications or more."""
    return [
        layer
        for layer in all_layers(network)
        if isinstance(layer, FourierConv2D) and layer.saving >= worthwhile
    ]


def _copy_weights(trained: keras.Model, served: keras.Model) -> None:
    origin = {layer.name: layer for layer in trained.layers}
    norms, kept = normalized_convolutions(trained), {layer.name for layer in served.layers}
    for layer in served.layers:
        if not layer.weights:
            continue
        before = origin[layer.name]
        if isinstance(layer, keras.Model):
            _copy_weights(before, layer)
            continue
        weights, norm = before.get_weights(), norms.get(layer.name)
        if layer.name == FIRST:
            weights[0] = weights[0] * np.float32(PIXEL_SCALE)
        folded = norm is not None and norm not in kept
        layer.set_weights(_fold(before, weights, origin[norm]) if folded else weights)


def _fold(
    convolution: keras.layers.Layer,
    weights: list[NDArray[np.float32]],
    norm: keras.layers.BatchNormalization,
) -> list[NDArray[np.float32]]:
    """The kernel and the bias [D] that do what the convolution and the normalisation behind it did.

    The kernel is [k, k, C, D], or [k, k, D, 1] of a convolution of each channel for itself.
    """
    gamma, beta, mean, variance = (np.asarray(weight, np.float64) for weight in norm.get_weights())
    scale = gamma / np.sqrt(variance + norm.epsilon)
    kernel, *bias = weights
    by_kernel = scale[:, None] if isinstance(convolution, keras.layers.DepthwiseConv2D) else scale
    offset = beta + (sum(bias) - mean) * scale
    return [(kernel * by_kernel).astype(np.float32), offset.astype(np.float32)]
