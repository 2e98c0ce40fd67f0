"""The basic block of the network: convolution, normalisation, ReLU."""

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
    """Applies a convolution (without bias), then normalisation and ReLU: [B, H, W, C] → [B, H, W, width].

    It is one layer if the normalisation is folded. `name` is also the prefix of the next layers' names.
    """
    folded = policy.folded and config.normalization == "batch"
    kind = FourierConv2D if saving(kernel, x.shape[-1], width) >= MIN_SAVING else layers.Conv2D
    common = {"kernel_initializer": make_initializer(config), "dtype": policy.dtype, "name": name}
    activation = "relu" if folded else None
    x = kind(width, kernel, padding="same", activation=activation, use_bias=folded, **common)(x)
    if folded:
        return x
    x = normalization(config, policy=policy, name=f"{name}_norm")(x)
    return layers.ReLU(dtype=policy.dtype, name=f"{name}_relu")(x)


def make_initializer(config: NetworkConfig) -> keras.initializers.Initializer | str:
    """Returns the initializer of convolution kernels that `config` selects."""
    if config.initializer == "normal_0.01":
        return keras.initializers.RandomNormal(stddev=0.01)
    return config.initializer


def normalized_convolutions(model: keras.Model) -> dict[str, str]:
    """Returns layer → batch normalisation or `LayerScale` (`keras.applications`) that follows it, by name."""
    followers = {}
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization) or type(layer).__name__ == "LayerScale":
            before = layer.input._keras_history.operation
            if isinstance(before, layers.Conv2D | layers.DepthwiseConv2D | layers.Dense):
                followers[before.name] = layer.name
    return followers
