"""The logits of a network whose weights no longer change, computed once per image."""

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Engine, Logits
from training.data.array_cache import ArrayCache
from training.data.feature_cache import digest_image


class LogitsCache:
    """An engine that runs `engine` only on images whose logits are not stored; see `segdec.engines.Engine`.

    They are stored while `cache` has space.
    """

    def __init__(self, engine: Engine, cache: ArrayCache) -> None:
        self._engine, self._cache, self._owner = engine, cache, object()
        self.batch_pixels = engine.batch_pixels

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Returns the logits of prepared images [B, h, w, C]."""
        keys = [(self._owner, digest_image(image)) for image in images]
        rows = [self._cache.get(key) for key in keys]
        missing = [row for row, arrays in enumerate(rows) if arrays is None]
        if missing:
            computed = self._engine.infer(images[missing])
            for place, row in enumerate(missing):
                named = vars(computed).items()
                rows[row] = arrays = {name: values[place] for name, values in named if values is not None}
                self._cache.put(keys[row], arrays)
        stored = [row for row in rows if row is not None]
        return Logits(**{name: np.stack([row[name] for row in stored]) for name in stored[0]})
