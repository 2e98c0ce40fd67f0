"""The features of images in their place: what an encoder that is held still makes of them, computed once."""

import math
from collections.abc import Callable, Hashable

import keras
import numpy as np
import tensorflow as tf

from segdec.runtime.cli import hide_stderr
from training.data.array_cache import BYTES_PER_MB, ArrayCache, Arrays

FEATURE_DTYPE = tf.float16
"""Of the 24 bits of a float32 the upper 11 are kept: half the memory, and every kept feature is as exact."""


class FeatureCache:
    """Features by example and flips, kept as far as the cache allows; may be used by several threads.

    They are computed image by image and rounded, whether they are kept or not: neither the size of the cache
    nor who shares a batch changes a bit of them.

    Args:
        encoder: Images [1, h, w, C], 0…255 → features by name; none of its weights may change.
        shape: Of every image (h, w, C).
        cache: Gives them room, so that what is read later cannot take it.
        images: How many there are, each form of an example counted.
        maps: What there is beside the features, [h, w] each: a mask, what is inspected, classes.

    Attributes:
        shapes: Shape of the features of one image, by name.
        images: How many there are.
    """

    def __init__(
        self,
        encoder: keras.Model,
        shape: tuple[int, ...],
        cache: ArrayCache,
        images: int,
        *,
        maps: int = 1,
    ) -> None:
        features = encoder.compute_output_spec(keras.KerasTensor((1, *shape)))
        self.shapes: dict[str, tuple[int, ...]] = {name: one.shape[1:] for name, one in features.items()}
        self.images = images
        values = sum(math.prod(shape) for shape in self.shapes.values())
        self._needed = images * (values * FEATURE_DTYPE.size + maps * math.prod(shape[:2]))
        self._cache = cache.reserve(self._needed)
        self._room = self._cache.free_bytes
        with hide_stderr():  # where oneDNN says once that it leaves numbers of this size to TensorFlow
            tf.constant(0.0, FEATURE_DTYPE)

        def encode(image: tf.Tensor) -> dict[str, tf.Tensor]:
            return {
                name: tf.cast(one[0], FEATURE_DTYPE)
                for name, one in encoder(image[None], training=False).items()
            }

        self._encode = tf.function(encode, input_signature=[tf.TensorSpec(shape, tf.float32)])

    def get(self, key: Hashable, see: Callable[[], Arrays]) -> Arrays:
        """Returns the features, and what there is beside the image.

        Args:
            key: Of the example and its flips.
            see: Returns the `image` [h, w, C], float32 0…255, and anything that goes with it.
        """
        kept = self._cache.get(key)
        if kept is None:
            kept = self.compute(see())
            self._cache.put(key, kept)
        return kept

    def describe_shortage(self) -> str | None:
        """Returns what to do if the cache has no room for all of them."""
        if self._needed <= self._room:
            return None
        return (
            f"The encoder's features of {self.images} images, flipped ones counted, take "
            f"{self._needed / BYTES_PER_MB:.0f} MB, and {self._room / BYTES_PER_MB:.0f} MB are free: what finds "
            "no room is computed anew each time, which is slower. Raise data.cache_mb by "
            f"{math.ceil((self._needed - self._room) / BYTES_PER_MB)}, if the machine has that memory, or name "
            "a data.cache_folder and raise data.disk_cache_mb."
        )

    def compute(self, seen: Arrays) -> Arrays:
        """Returns the features of the image in `seen`, and all else that is there."""
        features = self._encode(seen["image"])
        others = {name: np.ascontiguousarray(array) for name, array in seen.items() if name != "image"}
        return {**{name: one.numpy() for name, one in features.items()}, **others}
