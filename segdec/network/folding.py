"""The network as it is served: what is linear beside a convolution is part of its weights."""

import keras
import numpy as np
from numpy.typing import NDArray

from segdec.network.fourier import WORTHWHILE
from segdec.network.fourier_convolution import FourierConv2D
from segdec.network.layers import ComputePolicy
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
    layers = [*network.segmentation.layers, *network.decision.layers]
    return [layer for layer in layers if isinstance(layer, FourierConv2D) and layer.saving >= worthwhile]


def _copy_weights(trained: keras.Model, served: keras.Model) -> None:
    origin = {layer.name: layer for layer in trained.layers}
    kept = {layer.name for layer in served.layers}
    for layer in served.layers:
        weights, norm = origin[layer.name].get_weights(), f"{layer.name}_norm"
        if layer.name == FIRST:
            weights[0] = weights[0] * np.float32(PIXEL_SCALE)
        folded = norm in origin and norm not in kept
        layer.set_weights(_fold(weights[0], origin[norm]) if folded else weights)


def _fold(kernel: NDArray[np.float32], norm: keras.layers.BatchNormalization) -> list[NDArray[np.float32]]:
    """The kernel [k, k, C, D] and the bias [D] that do what `kernel` and the normalisation behind it did."""
    gamma, beta, mean, variance = (np.asarray(weight, np.float64) for weight in norm.get_weights())
    scale = gamma / np.sqrt(variance + norm.epsilon)
    return [(kernel * scale).astype(np.float32), (beta - mean * scale).astype(np.float32)]
