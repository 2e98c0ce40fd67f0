"""Memory that a network takes, depending on the pixels of its input, measured on this machine."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from api.inference.inference_thread import ImagePredictor, InferenceThread
from segdec.process_memory import measure_peak_memory, release_free_memory, resident_bytes

SIDES_PX = (256, 512, 1024)
"""Sides of the measured squares if the network takes any size."""
MAX_RUN_S = 1.0
"""A larger square that would take longer is not measured: the start must not wait for it."""
SAFETY = 1.3
"""Factor on the measured memory: for other shapes, batches and fragmentation."""
UNMEASURED_BYTES_PER_PIXEL = 1500.0
"""Used if the system does not report the peak: twice the maximum of `benchmarks/serving/memory_bound.py`."""


@dataclass(frozen=True)
class NetworkCost:
    """Memory of one run of a network: a constant and a part for each pixel of its input.

    A run with fewer than `min_pixels` counts as one with `min_pixels`.
    """

    base_bytes: float = 0.0
    bytes_per_pixel: float = 0.0
    min_pixels: int = 0

    def bytes_for(self, pixels: int) -> float:
        """Returns the memory of a run with an input of `pixels`, alone or in a batch."""
        return self.base_bytes + self.bytes_per_pixel * max(pixels, self.min_pixels)


async def measure_cost(predictor: ImagePredictor, inference_thread: InferenceThread) -> NetworkCost:
    """Runs a warm network on squares of growing size, or on its largest batch if its input size is fixed."""
    shape = predictor.warmup_shape()
    if predictor.config.input.policy not in ("native", "tile"):
        batch = inference_thread.batch_sizes_for(predictor, shape)[-1]
        needed, _ = await inference_thread.call(partial(_measure_run, predictor, (batch, *shape)))
        return NetworkCost(base_bytes=needed)
    for side in SIDES_PX:
        square = predictor.prepare(np.zeros((side, side, shape[2]), np.uint8)).shape
        needed, took_s = await inference_thread.call(partial(_measure_run, predictor, (1, *square)))
        if 4 * took_s > MAX_RUN_S:
            break
    batch_pixels = inference_thread.max_batch_pixels or predictor.batch_pixels
    return NetworkCost(0.0, needed / (square[0] * square[1]), batch_pixels)


def _measure_run(predictor: ImagePredictor, shape: Sequence[int]) -> tuple[float, float]:
    """Runs the network on zeros of `shape` [B, h, w, c]; returns bytes and seconds."""
    images = np.zeros(shape, np.uint8)
    release_free_memory()
    before, started = resident_bytes(), time.perf_counter()
    peak = measure_peak_memory(partial(predictor.infer, images))
    took_s = time.perf_counter() - started
    release_free_memory()
    if peak is None or before is None:
        return UNMEASURED_BYTES_PER_PIXEL * shape[0] * shape[1] * shape[2], took_s
    return SAFETY * max(peak - before, 0), took_s
