"""Folds linear operations next to a convolution into its weights, for serving."""

from collections.abc import Callable, Mapping

import keras
import numpy as np
from keras import layers
from numpy.typing import NDArray

from segdec.encoders import ENCODERS, JOINED_STRIDES
from segdec.network.convolution import normalized_convolutions
from segdec.network.fourier import MIN_SAVING
from segdec.network.fourier_convolution import FourierConv2D
from segdec.network.layers import ComputePolicy, all_layers
from segdec.network.network import PIXEL_SCALE, SegDecNet, build_network
from segdec.network.pooled_classes import PooledClasses
from segdec.network.pooled_score import PooledScore
from segdec.network.surface_memory import NearestPatch

Weights = NDArray[np.float32]
Change = Callable[[Weights], Weights]


def fold_network(network: SegDecNet, dtype: str | None = None) -> SegDecNet:
    """Returns a network with the same results and fewer operations; `dtype` is its Keras dtype policy."""
    served = build_network(network.config, ComputePolicy(dtype=dtype, folded=True))
    first = _first_kernel(served)
    _copy_weights(network, served, first)
    return served


def fourier_layers(network: SegDecNet, min_saving: float = MIN_SAVING) -> list[FourierConv2D]:
    """Returns the convolutions for which Fourier transforms save at least the factor `min_saving`."""
    convolutions = (layer for layer in all_layers(network) if isinstance(layer, FourierConv2D))
    return [layer for layer in convolutions if layer.saving >= min_saving]


def _first_kernel(served: SegDecNet) -> tuple[str, Change]:
    """Returns the name of the first convolution, and how pixel scaling is folded into its kernel."""
    if served.backbone is None:
        return "segmentation_1_1", lambda kernel: kernel * np.float32(PIXEL_SCALE)
    first = next(layer for layer in served.backbone.layers if isinstance(layer, layers.Conv2D))
    row, channels = ENCODERS[served.config.encoder], first.kernel.shape[2]

    def fold(kernel: Weights) -> Weights:
        """Converts [k, k, 3, D] for scaled pixels to [k, k, C, D] for pixels 0…255 minus their mean."""
        kernel = kernel[:, :, ::-1] if row.blue_first else kernel
        kernel = kernel / np.asarray(row.deviation, np.float32)[:, None]
        return kernel if channels == kernel.shape[2] else kernel.sum(axis=2, keepdims=True)

    return first.name, fold


def _copy_weights(trained: keras.Model, served: keras.Model, first: tuple[str, Change]) -> None:
    origin = {layer.name: layer for layer in trained.layers}
    norms, kept = normalized_convolutions(trained), {layer.name for layer in served.layers}
    standardized = _fold_standardization(origin)
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
        if layer.name in standardized:
            weights = standardized[layer.name]
        if isinstance(layer, NearestPatch | PooledClasses | PooledScore):  # without those of single folds
            weights = weights[: len(layer.weights)]
        for variable, value in zip(layer.weights, weights, strict=True):
            variable.assign(value.reshape(variable.shape))  # a dense kernel [C, D] becomes one [1, 1, C, D]


def _fold_standardization(layers_by_name: Mapping[str, keras.layers.Layer]) -> dict[str, list[Weights]]:
    """Returns the weights of a head's adapters, by name, that include the standardisation of its features."""
    folded: dict[str, list[Weights]] = {}
    total = np.zeros(1)
    for stride in JOINED_STRIDES:
        scaling = layers_by_name.get(f"standardized_{stride}")
        if scaling is None:
            return {}
        mean, variance = (np.asarray(weight, np.float64) for weight in scaling.get_weights())
        (kernel,) = layers_by_name[f"adapted_{stride}"].get_weights()
        scaled = kernel / np.sqrt(variance + scaling.epsilon)[:, None]
        total = total - mean @ scaled[0, 0]
        folded[f"adapted_{stride}"] = [scaled.astype(np.float32)]
    folded[f"adapted_{JOINED_STRIDES[0]}"].append(total.astype(np.float32))
    return folded


def _fold(
    convolution: keras.layers.Layer, weights: list[Weights], scaling: keras.layers.Layer
) -> list[Weights]:
    """Returns kernel and bias [D] that combine the convolution with the scaling of its channels.

    The kernel is [k, k, C, D], [C, D] for a dense layer, or [k, k, D, 1] for a depthwise convolution.
    """
    kernel, *bias = weights
    scale, *others = (np.asarray(weight, np.float64) for weight in scaling.get_weights())
    offset = np.zeros_like(scale)
    if isinstance(scaling, layers.BatchNormalization):
        beta, mean, variance = others
        scale = scale / np.sqrt(variance + scaling.epsilon)
        offset = beta - mean * scale
    by_kernel = scale[:, None] if isinstance(convolution, layers.DepthwiseConv2D) else scale
    return [(kernel * by_kernel).astype(np.float32), (offset + sum(bias) * scale).astype(np.float32)]
