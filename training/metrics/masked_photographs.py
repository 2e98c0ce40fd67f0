"""Measures models on defective photographs with masks."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TypeVar

import numpy as np

from datasets.sample import DataSetItem, Sample
from segdec.predictor import Predictor
from training.data.reading_pool import ReadingPool
from training.metrics.evaluation import Parts, is_known

MAX_PHOTOGRAPHS = 100
"""Limit on the photographs, in random order."""

MAX_PIXELS = 100_000_000
"""After so many no further photograph is measured: one of 16 megapixels takes a second."""

T = TypeVar("T")


def measure_masked(
    measure: Callable[[Predictor, Sample], T],
    parts: Parts,
    read: Callable[[DataSetItem], Sample],
    pool: ReadingPool,
) -> Iterator[T]:
    """Yields what `measure` returns for defective photographs with a known mask.

    Each is measured with the predictor of its part, in a thread of the pool.
    """

    def run(masked: tuple[Predictor, DataSetItem]) -> tuple[T | None, int]:
        predictor, item = masked
        sample = read(item)
        height, width = sample.image.shape[:2]
        return measure(predictor, sample) if is_known(sample) else None, height * width

    pixels = 0
    with closing(pool.map(run, _choose(parts), pool.threads)) as measured:
        for result, size in measured:
            if result is not None:
                yield result
            pixels += size
            if pixels >= MAX_PIXELS:
                return


def _choose(parts: Parts) -> list[tuple[Predictor, DataSetItem]]:
    masked = [
        (predictor, item)
        for predictor, items in parts
        for item in items
        if item.label and item.supervision == "mask"
    ]
    return [masked[index] for index in np.random.default_rng(0).permutation(len(masked))[:MAX_PHOTOGRAPHS]]
