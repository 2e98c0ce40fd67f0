"""What a network takes, measured where it will run: memory and time, by the pixels that it is given."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from api.inference.inference_thread import ImagePredictor, InferenceThread
from segdec.process_memory import measure_peak, release_free_memory, resident_bytes

logger = logging.getLogger(__name__)

SIDES = (256, 512, 1024)
"""Of the squares that a network without a size of its own is measured with, px."""

MAX_MEASURE_S = 1.0
"""Seconds that a further square may take; the start shall not wait for it."""

SAFETY = 1.3
"""Times what was measured: photographs of other shapes, batches, and what free memory is broken into."""

REPEATS = 2
"""Runs of each square: the order in which operations run beside one another moves the peak."""

UNMEASURED_BYTES_PER_PIXEL = 1500.0
"""Where the system does not tell the peak: more than twice what `benchmarks/serving/memory_bound.py` met."""


@dataclass(frozen=True)
class NetworkCost:
    """What a run of a network takes.

    Attributes:
        base_bytes: Of any run.
        bytes_per_pixel: For each pixel of the prepared photographs, beside that.
        s_per_pixel: Seconds for each, on a machine that does nothing else: the least that it takes.
        least_pixels: What a batch of small photographs has.
    """

    base_bytes: float = 0.0
    bytes_per_pixel: float = 0.0
    s_per_pixel: float = 0.0
    min_pixels: int = 0

    def bytes_for(self, pixels: int) -> float:
        """Returns the memory of a run with a prepared photograph of `pixels`, alone or in a batch."""
        return self.base_bytes + self.bytes_per_pixel * max(pixels, self.min_pixels)


@dataclass(frozen=True)
class Run:
    """A run that was measured: most bytes beside those in use before it (None: unknown), processor time."""

    pixels: int
    peak_bytes: int | None
    cpu_s: float
    wall_s: float


async def measure_cost(
    predictor: ImagePredictor, inference_thread: InferenceThread, threads: int
) -> NetworkCost:
    """Runs a warm network on squares of growing size, or on the largest batch if it has a size of its own.

    Args:
        predictor: Holds the network.
        inference_thread: Runs it.
        threads: Of its engine.
    """
    shape = predictor.warmup_shape()
    sizes = inference_thread.batch_sizes_for(predictor, shape)
    if predictor.config.input.policy not in ("native", "tile"):
        run = await inference_thread.call(partial(_run, predictor, (sizes[-1], *shape)))
        return _cost_of_batch(run)
    runs: list[Run] = []
    for side in SIDES:
        if len(runs) > 1 and 4 * runs[-1].wall_s > MAX_MEASURE_S:
            break
        square = predictor.prepare(np.zeros((side, side, shape[2]), np.uint8))
        again = [
            await inference_thread.call(partial(_run, predictor, (1, *square.shape))) for _ in range(REPEATS)
        ]
        runs.append(max(again, key=lambda run: run.peak_bytes or 0))
    batch_pixels = inference_thread.max_batch_pixels or predictor.batch_pixels
    return _cost_of_squares(runs[-2:], batch_pixels, threads)


def _run(predictor: ImagePredictor, shape: Sequence[int]) -> Run:
    """Runs the network on zeros of `shape` [B, h, w, c]."""
    images = np.zeros(shape, np.uint8)
    release_free_memory()
    before, begun, cpu = resident_bytes(), time.perf_counter(), time.process_time()
    peak = measure_peak(lambda: predictor.infer(images))
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - begun
    release_free_memory()
    grown = None if peak is None or before is None else max(peak - before, 0)
    return Run(int(np.prod(shape[:3])), grown, cpu_s, wall_s)


def _cost_of_batch(run: Run) -> NetworkCost:
    peak = UNMEASURED_BYTES_PER_PIXEL * run.pixels if run.peak_bytes is None else SAFETY * run.peak_bytes
    return NetworkCost(base_bytes=peak)


def _cost_of_squares(runs: Sequence[Run], batch_pixels: int, threads: int) -> NetworkCost:
    """Draws the line through the smaller and the larger run, or a steeper one from 0 to the larger one."""
    small, large = runs
    more = large.pixels - small.pixels
    s_per_pixel = max(large.cpu_s - small.cpu_s, 0.0) / more / threads
    if small.peak_bytes is None or large.peak_bytes is None:
        return NetworkCost(0.0, UNMEASURED_BYTES_PER_PIXEL, s_per_pixel, batch_pixels)
    slope = max((large.peak_bytes - small.peak_bytes) / more, large.peak_bytes / large.pixels)
    base = max(small.peak_bytes - slope * small.pixels, 0.0)
    return NetworkCost(SAFETY * base, SAFETY * slope, s_per_pixel, batch_pixels)
