"""Logits that are computed once per image."""

import numpy as np
import pytest

from segdec.engines import Logits
from training.data.array_cache import ArrayCache
from training.data.logits_cache import LogitsCache


class SumEngine:
    """Returns logits that depend on the pixels, and remembers how many images it got."""

    batch_pixels = 100

    def __init__(self, with_surface):
        self.batches, self._with_surface = [], with_surface

    def infer(self, images):
        self.batches.append(len(images))
        sums = images.sum(axis=(1, 2, 3)).astype(np.float32)
        surface = np.stack([sums, -sums], axis=1) if self._with_surface else None
        return Logits(images[..., :1].astype(np.float32), np.stack([0 * sums, sums], axis=1), surface)


@pytest.mark.parametrize(("memory_mb", "batches"), [(1, [3, 4]), (0, [3, 4, 2, 4])])
@pytest.mark.parametrize("with_surface", [True, False])
def test_batches_of_stored_images_are_not_computed_again(memory_mb, batches, with_surface):
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), np.uint8)
    cache, engine = ArrayCache(memory_mb), SumEngine(with_surface)
    stored = LogitsCache(engine, cache)
    stored.infer(images[[2, 0, 1]])
    for rows in ([0, 1, 2, 3], [3, 1], [0, 1, 2, 3]):
        answer = stored.infer(images[rows])
    assert engine.batches == batches
    expected = SumEngine(with_surface).infer(images)
    for name in ("mask", "classes", "surface"):
        np.testing.assert_array_equal(getattr(answer, name), getattr(expected, name))
    other = SumEngine(with_surface)  # a second engine does not get the logits of the first
    LogitsCache(other, cache).infer(images)
    assert other.batches == [4]


def test_images_of_the_same_bytes_may_differ_in_shape():
    stored = LogitsCache(SumEngine(with_surface=False), ArrayCache(1))
    for shape in ((2, 8, 16, 1), (2, 16, 8, 1)):
        assert stored.infer(np.zeros(shape, np.uint8)).mask.shape == shape
