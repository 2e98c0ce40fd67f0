"""Features of a frozen encoder, computed once per image."""

import hashlib
import math
from collections.abc import Callable, Hashable

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.runtime.cli import hide_stderr
from training.data.array_cache import BYTES_PER_MB, ArrayCache, Arrays

FEATURE_DTYPE = tf.float16
"""Half the memory of float32; 11 of 24 significant bits are stored."""


class FeatureCache:
    """Features by example, stored if there is space; thread-safe.

    They are computed image by image and always rounded: they are bit-identical for every size of the cache
    and every batch.

    Args:
        encoder: Images [1, h, w, C], 0…255 → features by name; frozen.
        shape: Shape (h, w, C) of the images.
        cache: Space for `images` images, each with `maps` further maps [h, w], is reserved in it.

    Attributes:
        shapes: Shape of the features of one image, by name.
    """

    def __init__(
        self, encoder: keras.Model, shape: tuple[int, ...], cache: ArrayCache, images: int, *, maps: int = 1
    ) -> None:
        features = encoder.compute_output_spec(keras.KerasTensor((1, *shape)))
        self.shapes: dict[str, tuple[int, ...]] = {name: one.shape[1:] for name, one in features.items()}
        self.images = images
        values = sum(math.prod(shape) for shape in self.shapes.values())
        self._needed = images * (values * FEATURE_DTYPE.size + maps * math.prod(shape[:2]))
        self._cache = cache.reserve(self._needed)
        self._reserved = self._cache.free_bytes
        with hide_stderr():  # oneDNN prints once that it does not support this type
            tf.constant(0.0, FEATURE_DTYPE)

        def encode(image: tf.Tensor) -> dict[str, tf.Tensor]:
            features = encoder(image[None], training=False)
            return {name: tf.cast(one[0], FEATURE_DTYPE) for name, one in features.items()}

        self._keys: dict[bytes, Hashable] = {}
        self._encode = tf.function(encode, input_signature=[tf.TensorSpec(shape, tf.float32)])

    def get(self, key: Hashable, load: Callable[[], Arrays]) -> Arrays:
        """Returns the features and maps of an image; `key` is the example.

        `load` returns the `image` [h, w, C], float32 0…255, and its maps.
        """
        features = self._cache.get(key)
        if features is None:
            arrays = load()
            features = self.compute(arrays)
            self._cache.put(key, features)
            self._keys[digest_image(arrays["image"].astype(np.uint8))] = key
        return features

    def find(self, image: NDArray[np.uint8]) -> Arrays:
        """Returns the features of an image [h, w, C], which are computed unless its example is stored."""
        key = self._keys.get(digest_image(image))
        stored = None if key is None else self._cache.get(key)
        return self.compute({"image": image.astype(np.float32)}) if stored is None else stored

    def describe_shortage(self) -> str | None:
        """Returns a warning if the cache is too small."""
        if self._needed <= self._reserved:
            return None
        return (
            f"The encoder's features of {self.images} images need "
            f"{self._needed / BYTES_PER_MB:.0f} MB; {self._reserved / BYTES_PER_MB:.0f} MB are free. The "
            "rest is computed again in each step, which is slower. Raise data.cache_mb by "
            f"{math.ceil((self._needed - self._reserved) / BYTES_PER_MB)}, or set data.cache_folder and "
            "raise data.disk_cache_mb."
        )

    def compute(self, arrays: Arrays) -> Arrays:
        """Returns the features of the `image` in `arrays`, and all other arrays."""
        features = self._encode(arrays["image"])
        others = {name: np.ascontiguousarray(array) for name, array in arrays.items() if name != "image"}
        return {**{name: one.numpy() for name, one in features.items()}, **others}


def digest_image(image: NDArray[np.uint8]) -> bytes:
    """Returns a digest of the pixels and the shape of an image."""
    digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=16)
    digest.update(image.tobytes())
    return digest.digest()
