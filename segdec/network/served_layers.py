"""Replaces layers of `keras.applications` for serving: the same results with fewer operation types."""

import math
from collections.abc import Mapping
from typing import Any

import keras
from keras import layers, ops


def serve_layer(kind: type[layers.Layer], settings: Mapping[str, Any]) -> layers.Layer:
    """Creates the layer of a class and its settings, or its replacement for serving.

    A dense layer becomes a 1×1 convolution, which int8 supports. A convolution with as many groups as
    channels becomes a depthwise convolution, because Keras compiles the former with XLA. Activations with a
    custom gradient become plain operations. Weights change only in shape.
    """
    common = ["name", "dtype", "activation", "use_bias"]
    if issubclass(kind, layers.Dense):
        layer = layers.Conv2D(settings["units"], 1, **{key: settings[key] for key in common})
    elif issubclass(kind, layers.Conv2D) and 1 < settings["groups"] == settings["filters"]:
        common += ["strides", "padding", "dilation_rate"]
        layer = layers.DepthwiseConv2D(settings["kernel_size"], **{key: settings[key] for key in common})
    else:
        layer = kind.from_config(dict(settings))
    activation = getattr(layer, "activation", None)
    if activation is keras.activations.silu:
        layer.activation = lambda x: x * ops.sigmoid(x)
    elif activation is keras.activations.gelu:
        layer.activation = lambda x: 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))
    return layer
