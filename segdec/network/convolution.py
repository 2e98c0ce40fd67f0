"""The block that the network is made of: convolution, normalisation, ReLU."""

from typing import Any

import keras
from keras import layers

from segdec.config import NetworkConfig
from segdec.network.fourier import MIN_SAVING, saving
from segdec.network.fourier_convolution import FourierConv2D
from segdec.network.layers import ComputePolicy, normalization


def convolution(
    x: Any, config: NetworkConfig, policy: ComputePolicy, width: int, kernel: int, name: str
) -> Any:
    """Applies convolution without bias, normalisation, ReLU: one layer where the normalisation is folded.

    Args:
        x: Symbolic tensor [B, H, W, C].
        config: Names the normalisation and the first weights.
        policy: How it computes.
        width: Channels that come out.
        kernel: Side of the kernel, px.
        name: Of the convolution; the layers behind it are called after it.

    Returns:
        Symbolic tensor [B, H, W, width].
    """
    dtype = policy.dtype
    folded = policy.folded and config.normalization == "batch"
    kind = FourierConv2D if saving(kernel, x.shape[-1], width) >= MIN_SAVING else layers.Conv2D
    x = kind(
        width,
        kernel,
        padding="same",
        activation="relu" if folded else None,
        use_bias=folded,
        kernel_initializer=make_initializer(config),
        dtype=dtype,
        name=name,
    )(x)
    if folded:
        return x
    x = normalization(config, policy=policy, name=f"{name}_norm")(x)
    return layers.ReLU(dtype=dtype, name=f"{name}_relu")(x)


def make_initializer(config: NetworkConfig) -> keras.initializers.Initializer | str:
    """Returns the initializer of convolution kernels that `config` names."""
    if config.initializer == "normal_0.01":
        return keras.initializers.RandomNormal(stddev=0.01)
    return config.initializer


def normalized_convolutions(model: keras.Model) -> dict[str, str]:
    """Finds what multiplies by kernels, with channels scaled behind it: name of the one → name of the other.

    They are scaled by batch normalisation, or by the `LayerScale` of `keras.applications`.
    """
    found = {}
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization) or type(layer).__name__ == "LayerScale":
            before = layer.input._keras_history.operation
            if isinstance(before, layers.Conv2D | layers.DepthwiseConv2D | layers.Dense):
                found[before.name] = layer.name
    return found
