"""The logits of a network whose weights no longer change, computed once per image."""

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Engine, Logits
from training.data.array_cache import ArrayCache
from training.data.feature_cache import digest_image


class LogitsCache:
    """An engine that runs `engine` only on batches with an image whose logits are not stored.

    They are stored while `cache` has space. Batches are not divided, so that the logits of the same batch are
    bit-identical for every size of the cache; see `segdec.engines.Engine`.
    """

    def __init__(self, engine: Engine, cache: ArrayCache) -> None:
        self._engine, self._cache, self._owner = engine, cache, object()
        self.batch_pixels = engine.batch_pixels

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Returns the logits of prepared images [B, h, w, C]."""
        keys = [(self._owner, digest_image(image)) for image in images]
        stored = [arrays for key in keys if (arrays := self._cache.get(key)) is not None]
        if len(stored) == len(keys):
            return Logits(**{name: np.stack([one[name] for one in stored]) for name in stored[0]})
        logits = self._engine.infer(images)
        named = {name: values for name, values in vars(logits).items() if values is not None}
        for row, key in enumerate(keys):
            self._cache.put(key, {name: values[row] for name, values in named.items()})
        return logits
