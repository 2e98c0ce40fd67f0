"""Layers of `keras.applications` as they are served: the same answers from fewer kinds of operations."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import layers, ops

Settings = Mapping[str, Any]


def serve_layer(kind: type[layers.Layer], settings: Settings) -> layers.Layer:
    """Makes the layer of a class and its settings, or the one that is served in its place.

    A dense layer, which is one of the pixels, becomes a 1×1 convolution, which int8 knows. A convolution in
    as many groups as channels becomes one of each channel for itself; Keras has XLA compile the former.
    Activations that bring a gradient of their own become what they compute. Weights change by no more than
    their shape.
    """
    if issubclass(kind, layers.Dense):
        layer = layers.Conv2D(settings["units"], 1, **_common(settings))
    elif issubclass(kind, layers.Conv2D) and 1 < settings["groups"] == settings["filters"]:
        same = {key: settings[key] for key in ("strides", "padding", "dilation_rate")}
        layer = layers.DepthwiseConv2D(settings["kernel_size"], **same, **_common(settings))
    else:
        layer = kind.from_config(dict(settings))
    activation = getattr(layer, "activation", None)
    if activation in _PLAIN:
        layer.activation = _PLAIN[activation]
    return layer


def _common(settings: Settings) -> dict[str, Any]:
    return {key: settings[key] for key in ("name", "dtype", "activation", "use_bias")}


def _silu(x: Any) -> Any:
    return x * ops.sigmoid(x)


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))


_PLAIN: dict[Any, Callable[[Any], Any]] = {keras.activations.silu: _silu, keras.activations.gelu: _gelu}
