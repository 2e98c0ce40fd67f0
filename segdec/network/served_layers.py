"""Replaces layers of `keras.applications` for serving: the same results with fewer operation types."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import layers, ops

Settings = Mapping[str, Any]


def serve_layer(kind: type[layers.Layer], settings: Settings) -> layers.Layer:
    """Creates the layer of a class and its settings, or its replacement for serving.

    A dense layer becomes a 1×1 convolution, which int8 supports. A convolution with as many groups as
    channels becomes a depthwise convolution, because Keras compiles the former with XLA. Activations with a
    custom gradient become plain operations. Weights change only in shape.
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
