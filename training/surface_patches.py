"""Patches of good surface: described by an encoder's features, sampled, and their distances measured."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.network.surface_memory import EPSILON, MIN_WIDTH, PATCH_STRIDES, PATCHES
from training.data.array_cache import Arrays
from training.data.augmentation import rotations_keeping_size

Floats = NDArray[np.floating[Any]]
Image = NDArray[np.uint8]
Encode = Callable[[Image], Arrays]
"""Returns the encoder's features by name of a prepared image, uint8 [h, w, C]."""


SAMPLED_CELLS = 12_000
"""Cells whose principal components describe all patches."""

VARIANCE_IMAGES, WIDE_VARIANCE_IMAGES, MIN_VARIANCE = 10, 100, 1e-6
"""The mean variance is added to that of each component, in the proportion of so many images to all, and a
number for identical cells. Patches of more than `MIN_WIDTH` numbers have smaller components."""


def set_projection(
    memory: keras.Model, encode: Encode, images: Sequence[Image], random: np.random.Generator
) -> None:
    """Sets the projections of a memory to the first principal components of the features of images.

    Each is divided by its standard deviation, so that distances are about Mahalanobis distances. With few
    images small variances are uncertain, so all are increased. The mean patch becomes 0.
    """
    layers = [memory.get_layer(f"{PATCHES}_{stride}") for stride in PATCH_STRIDES]
    sample = _sample_features(memory, encode, images, random)
    channels, width = sample.shape[1], layers[0].width
    variances, components = np.linalg.eigh(np.cov(sample, rowvar=False))  # ascending
    added_images = VARIANCE_IMAGES if width <= MIN_WIDTH else WIDE_VARIANCE_IMAGES
    added = added_images / len(images) * variances.mean() + MIN_VARIANCE
    deviations = np.sqrt(variances.clip(0) + added)
    kernel = np.zeros((channels, width))  # with fewer channels than numbers of a patch, some remain 0
    kernel[:, :channels] = (components / deviations)[:, ::-1][:, :width] / np.sqrt(width)
    bias = -sample.mean(axis=0) @ kernel
    ends = np.cumsum([layer.kernel.shape[0] for layer in layers])[:-1]
    for layer, part in zip(layers, np.split(kernel, ends), strict=True):
        layer.set_weights([part, bias])
        bias = np.zeros(width)


def _sample_features(
    memory: keras.Model, encode: Encode, images: Sequence[Image], random: np.random.Generator
) -> Floats:
    """Returns features [N, C] of random cells, with the scale that the projections of a memory give them."""

    @tf.function
    def join(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        joined: list[tf.Tensor] = []
        for stride in PATCH_STRIDES:
            x = inputs[f"joined_{stride}"]
            x *= tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + EPSILON)
            if joined:
                x = memory.get_layer(f"enlarged_{stride}")(x)
                x = memory.get_layer(f"cut_{stride}")([x, joined[0]])
            joined.append(x)
        return tf.concat(joined, -1)

    share, drawn = max(2, SAMPLED_CELLS // len(images)), []
    for image in images:
        features = encode(image)
        names = (f"joined_{stride}" for stride in PATCH_STRIDES)
        cells = join({name: tf.constant(features[name][None], tf.float32) for name in names})
        flat = np.reshape(cells, (-1, cells.shape[-1]))
        drawn.append(flat[random.permutation(len(flat))[:share]])
    return np.concatenate(drawn)


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
