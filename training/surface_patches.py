"""Patches of good surface: described by an encoder's features, sampled, and their distances measured."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.network.surface_memory import PATCH_STRIDES, PATCHES
from training.data.array_cache import Arrays
from training.data.augmentation import rotations_keeping_size

Floats = NDArray[np.floating[Any]]
Image = NDArray[np.uint8]
Encode = Callable[[Image], Arrays]
"""Returns the encoder's features by name of a prepared image, uint8 [h, w, C]."""


def set_projection(memory: keras.Model, random: np.random.Generator) -> None:
    """Sets the projections of a memory to orthogonal ones, which keep distances on average."""
    layers = [memory.get_layer(f"{PATCHES}_{stride}") for stride in PATCH_STRIDES]
    channels = [layer.kernel.shape[0] for layer in layers]
    # With fewer channels than numbers of a patch, the columns cannot all be orthogonal.
    width = layers[0].width
    normal = random.normal(size=(max(sum(channels), width), width))
    kernel = np.linalg.qr(normal)[0][: sum(channels)] / np.sqrt(width)
    for layer, part in zip(layers, np.split(kernel, np.cumsum(channels)[:-1]), strict=True):
        layer.set_weights([part, np.zeros(width)])


def patch_describer(memory: keras.Model, encode: Encode) -> Callable[[Image], Floats]:
    """Returns a function: an image → its patches [h / 8, w / 8, D]."""
    part = keras.Model(memory.input, memory.get_layer(PATCHES).output)
    names, call = list(memory.input), tf.function(lambda inputs: part(inputs, training=False))

    def describe(image: Image) -> Floats:
        features = encode(image)
        inputs = {name: tf.constant(features[name][None], tf.float32) for name in names}
        return np.asarray(call(inputs)[0])

    return describe


def rotated_copies(images: Iterable[Image]) -> Iterator[Image]:
    """Yields copies of each image [h, w, C], rotated by the right angles that keep its size."""
    for image in images:
        for turns in rotations_keeping_size(image.shape)[1:]:
            yield np.ascontiguousarray(np.rot90(image, turns))


def draw_patches(patches: Sequence[Floats], number: int, random: np.random.Generator) -> Floats:
    """Returns about `number` random patches [N, D], as many of each photograph."""
    share = max(1, number // len(patches))
    flat = [one.reshape(-1, one.shape[-1]) for one in patches]
    drawn = [one[random.permutation(len(one))[:share]] for one in flat]
    return np.concatenate(drawn).astype(np.float32)


def measure_distances(distances: keras.Model, patches: Sequence[Floats]) -> Iterator[Floats]:
    """Yields the smoothed logarithms of distances [h, w] of the patches [h, w, D] of each photograph."""
    for one in patches:
        yield distances(tf.constant(one[None], tf.float32), training=False)[0, ..., 0].numpy()
