"""Runs networks outside of the event loop: one thread for all models, in batches of one shape."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from api.inference.watchdog import Step, Watchdog
from segdec.config import ModelConfig
from segdec.engines import Logits
from segdec.inference.batching import PredictionSteps

T = TypeVar("T")

MIN_FILL_SHARE = 0.75
"""Minimum share of photographs in a padded batch: with more padding, two smaller batches are faster."""


class ImagePredictor(PredictionSteps, Protocol):
    """The part of `segdec.predictor.Predictor` that the service uses."""

    @property
    def config(self) -> ModelConfig: ...

    def with_config(self, config: ModelConfig) -> Self: ...


@dataclass(frozen=True)
class InferenceResult:
    """Output of the network for one photograph: row `row` of `logits`; times in milliseconds."""

    logits: Logits
    row: int
    queue_ms: float
    infer_ms: float
    batch_size: int


@dataclass(eq=False)
class PendingPhotograph:
    """A prepared photograph that waits for the network; times are seconds of `time.perf_counter`."""

    predictor: ImagePredictor
    image: NDArray[np.uint8]  # [h, w, c]
    step: ClassVar[Step] = "infer"
    future: "Future[InferenceResult]" = field(default_factory=Future)
    submitted: float = field(default_factory=time.perf_counter)

    def can_batch_with(self, other: "PendingPhotograph | PendingCall") -> bool:
        return (
            isinstance(other, PendingPhotograph)
            and self.predictor is other.predictor
            and self.image.shape == other.image.shape
        )


@dataclass(eq=False)
class PendingCall:
    """A function that waits for the inference thread, for example to warm up a model."""

    function: Callable[[], Any]
    step: Step = "load"
    future: "Future[Any]" = field(default_factory=Future)

    def can_batch_with(self, other: "PendingPhotograph | PendingCall") -> bool:
        return other is self


Pending = PendingPhotograph | PendingCall


class InferenceThread:
    """The only thread that runs models, and the queue of photographs for it.

    Args:
        batch_sizes: Allowed sizes of batches; a batch is padded to one of them.
        max_batch_pixels: Maximum of batch × height × width; None for the maximum of each model's engine.
        wait_s: Seconds to wait for a batch to fill.
        observe_batch: Called with the number of photographs in each batch.
        watchdog: Watches each step.
    """

    def __init__(
        self,
        *,
        batch_sizes: Sequence[int],
        max_batch_pixels: int | None,
        wait_s: float = 0.0,
        observe_batch: Callable[[int], None],
        watchdog: Watchdog,
    ) -> None:
        self.batch_sizes = tuple(sorted(set(batch_sizes)))
        self.max_batch_pixels = max_batch_pixels
        self._wait_s = wait_s
        self._observe_batch = observe_batch
        self._watchdog = watchdog
        self._queue: deque[Pending] = deque()
        self._idle_queue: deque[Pending] = deque()
        self._changed = threading.Condition()
        self.closed = False
        self._thread = threading.Thread(target=self._work, name="inference", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it accepts photographs."""
        return self._thread.is_alive() and not self.closed

    @property
    def waiting(self) -> int:
        """Number of waiting photographs and calls, without those submitted with `when_idle`."""
        return len(self._queue)

    def submit(self, predictor: ImagePredictor, image: NDArray[np.uint8]) -> "Future[InferenceResult]":
        """Enqueues a photograph [h, w, c], prepared by `predictor`, for its network; from any thread.

        Raises:
            RuntimeError: If the thread has ended.
        """
        photograph = PendingPhotograph(predictor, image)
        self._append(photograph, self._queue)
        return photograph.future

    def submit_call(self, function: Callable[[], T], *, when_idle: bool = False) -> "Future[T]":
        """Enqueues `function` behind the waiting photographs; from any thread. It runs alone; with
        `when_idle`, photographs that arrive later still run first.

        Raises:
            RuntimeError: If the thread has ended.
        """
        call = PendingCall(function, "shadow" if when_idle else "load")
        self._append(call, self._idle_queue if when_idle else self._queue)
        return call.future

    async def call(self, function: Callable[[], T], *, when_idle: bool = False) -> T:
        """Runs `function` on the thread, between two batches; arguments as for `submit_call`."""
        future = self.submit_call(function, when_idle=when_idle)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self.cancel(future)
            raise

    def cancel(self, future: "Future[Any]") -> None:
        """Cancels a future and removes its work from the queue; work that has begun continues."""
        with self._changed:
            for queue in (self._queue, self._idle_queue):
                for item in [item for item in queue if item.future is future]:
                    queue.remove(item)
        future.cancel()

    def batch_sizes_for(self, predictor: ImagePredictor, shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the allowed batch sizes for photographs prepared to `shape` [h, w, c]."""
        max_pixels = self.max_batch_pixels or predictor.batch_pixels
        return tuple(size for size in self.batch_sizes if size * shape[0] * shape[1] <= max_pixels) or (1,)

    def close(self, timeout_s: float) -> None:
        """Ends the thread after the current batch and cancels what waits.

        Waits `timeout_s` for that batch: only the end of the process can interrupt it.
        """
        with self._changed:
            self.closed = True
            self._changed.notify()
        self._thread.join(timeout_s)
        with self._changed:
            waiting = [*self._queue, *self._idle_queue]
            self._queue.clear()
            self._idle_queue.clear()
        for item in waiting:
            item.future.cancel()

    def _append(self, item: Pending, queue: deque[Any]) -> None:
        with self._changed:
            if not self.alive:
                raise RuntimeError("The inference thread has ended.")
            queue.append(item)
            self._changed.notify()

    # === On the thread ===

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                with self._watchdog.watch(batch[0].step):
                    results = self._run(batch)
            except BaseException as error:  # passed to the futures
                _fail(batch, error)
            else:
                _resolve(batch, results)
                del results
            del batch  # no photograph stays in memory while the thread waits

    def _next_batch(self) -> list[Pending]:
        """Waits for work and dequeues a batch, the oldest first; returns an empty list after `close`."""
        with self._changed:
            while not self.closed:
                if self._queue or self._idle_queue:
                    if self._wait_s and self._fill():
                        continue
                    batch = self._dequeue()
                    if batch := [item for item in batch if item.future.set_running_or_notify_cancel()]:
                        return batch
                else:
                    self._changed.wait()
        return []

    def _fill(self) -> bool:
        """Waits once for a batch to fill; returns whether the queue must be checked again."""
        oldest = self._queue[0] if self._queue else self._idle_queue[0]
        if isinstance(oldest, PendingCall) or time.perf_counter() - oldest.submitted >= self._wait_s:
            return False
        largest = self.batch_sizes_for(oldest.predictor, oldest.image.shape)[-1]
        if sum(oldest.can_batch_with(item) for item in self._queue) >= largest:
            return False
        self._changed.wait(oldest.submitted + self._wait_s - time.perf_counter())
        return True

    def _dequeue(self) -> list[Pending]:
        if not self._queue:
            return [self._idle_queue.popleft()]
        oldest = self._queue[0]
        fitting = [item for item in self._queue if oldest.can_batch_with(item)]
        if isinstance(oldest, PendingPhotograph):
            sizes = self.batch_sizes_for(oldest.predictor, oldest.image.shape)
            fitting = fitting[: choose_batch(len(fitting), sizes)[0]]
        for item in fitting:
            self._queue.remove(item)
        return fitting

    def _run(self, batch: list[Pending]) -> list[Any]:
        """Returns the results of `batch`: one call, or photographs of one shape and model."""
        if isinstance(batch[0], PendingCall):
            return [batch[0].function()]
        return self._infer_batch([item for item in batch if isinstance(item, PendingPhotograph)])

    def _infer_batch(self, photographs: list[PendingPhotograph]) -> list[InferenceResult]:
        started = time.perf_counter()
        first, count = photographs[0], len(photographs)
        _, size = choose_batch(count, self.batch_sizes_for(first.predictor, first.image.shape))
        images = [photograph.image for photograph in photographs]
        images += images[-1:] * (size - count)
        logits = first.predictor.infer(np.stack(images))
        infer_ms = (time.perf_counter() - started) * 1000
        self._observe_batch(count)
        return [
            InferenceResult(logits, row, (started - photograph.submitted) * 1000, infer_ms, count)
            for row, photograph in enumerate(photographs)
        ]


def choose_batch(waiting: int, sizes: Sequence[int]) -> tuple[int, int]:
    """Returns how many of `waiting` photographs to run, and which of the ascending `sizes` to pad them to.

    A batch is padded if photographs fill at least three quarters of it. Otherwise they fill the largest
    possible size, and the rest waits for the next batch.
    """
    larger = next((size for size in sizes if size >= waiting), None)
    filled = [size for size in sizes if size <= waiting]
    if larger is not None and (not filled or waiting >= MIN_FILL_SHARE * larger):
        return waiting, larger
    return filled[-1], filled[-1]


def _resolve(items: Sequence[Pending], results: Sequence[Any]) -> None:
    for item, result in zip(items, results, strict=True):
        item.future.set_result(result)


def _fail(items: Sequence[Pending], error: BaseException) -> None:
    for item in items:
        item.future.set_exception(error)
