"""Saves a network as a SavedModel, which TensorFlow runs and other engines convert."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from segdec.engines.tensorflow import input_signature
from segdec.network.folding import fourier_layers
from segdec.network.fourier import channel_groups, transforms
from segdec.network.fourier_convolution import FourierConv2D, fourier_transforms
from segdec.network.network import SegDecNet


def save_network(network: SegDecNet, folder: Path) -> None:
    """Writes a SavedModel of a folded network; its functions take uint8 [B, H, W, C], H and W divisible by 8.

    `serve` convolves directly. If Fourier transforms are faster for some convolutions, `serve_fourier` uses
    them; after the images it takes the spectra of the kernels that `fourier_kernels` returns.
    """
    model = _with_variables(network)
    signature = [input_signature(network)]
    model.serve = tf.function(lambda images: network(images, training=False), input_signature=signature)
    if layers := fourier_layers(network):
        kernels = [layer.kernel.value for layer in layers]
        model.fourier_kernels = tf.function(lambda: kernels, input_signature=[])
        model.serve_fourier = _fourier_function(network, layers, bounded=True)
    tf.saved_model.save(model, str(folder), signatures={"serving_default": model.serve})


def save_fourier_network(network: SegDecNet, folder: Path, layers: Sequence[FourierConv2D]) -> None:
    """Writes a SavedModel for other engines, in which `layers` use Fourier transforms, without a loop."""
    model = _with_variables(network)
    function = _fourier_function(network, layers, bounded=False)
    tf.saved_model.save(model, str(folder), signatures={"serving_default": function})


def _with_variables(network: keras.Model) -> tf.Module:
    """Returns a module with the network's variables; an export by Keras would store them twice."""
    model = tf.Module()
    model.network_variables = [variable.value for variable in network.variables]
    return model


def _fourier_function(network: SegDecNet, layers: Sequence[FourierConv2D], *, bounded: bool) -> Any:
    def serve_fourier(images: tf.Tensor, *spectra: tf.Tensor) -> Any:
        by_name = {layer.name: one for layer, one in zip(layers, spectra, strict=True)}
        with fourier_transforms(by_name, bounded=bounded):
            return network(images, training=False)

    signature = [input_signature(network), *map(_spectra_signature, layers)]
    return tf.function(serve_fourier, input_signature=signature)


def _spectra_signature(layer: FourierConv2D) -> tf.TensorSpec:
    side, _, channels, width = layer.kernel.shape
    by, groups = transforms(side), channel_groups(width)
    shape = [groups, 2, by.half * by.tile, channels, width // groups]
    return tf.TensorSpec(shape, tf.float32, name=f"spectra_{layer.name}")
