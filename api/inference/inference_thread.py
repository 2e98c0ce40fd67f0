"""Runs networks outside the event loop: one thread takes what waits, a batch of one shape at a time.

There is one such thread for a device, whatever number of models are served: they share the device.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from api.inference.watchdog import Step, Watchdog
from segdec.config import ModelConfig
from segdec.engines import Logits
from segdec.inference.batching import PredictionSteps

T = TypeVar("T")

MIN_FILL_SHARE = 0.75
"""Share of real photographs from which on a batch is padded up; emptier ones cost more than they gain."""


class ImagePredictor(PredictionSteps, Protocol):
    """What the service needs of a `segdec.predictor.Predictor`."""

    @property
    def config(self) -> ModelConfig:
        """The model's network, input, classes and thresholds."""
        ...


@dataclass(frozen=True)
class InferenceResult:
    """What the network gave for one photograph: row `row` of `logits`; times in milliseconds."""

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

    def batches_with(self, other: "PendingPhotograph | PendingCall") -> bool:
        """Returns whether both can go through the network together."""
        return (
            isinstance(other, PendingPhotograph)
            and self.predictor is other.predictor
            and self.image.shape == other.image.shape
        )


@dataclass(eq=False)
class PendingCall:
    """A function that waits for the inference thread, for example to warm a model."""

    function: Callable[[], Any]
    step: Step = "load"
    future: "Future[Any]" = field(default_factory=Future)

    def batches_with(self, other: "PendingPhotograph | PendingCall") -> bool:
        """Returns whether `other` is this call: a call runs alone."""
        return other is self


Pending = PendingPhotograph | PendingCall


class InferenceThread:
    """The one thread that may run models, and the photographs that wait for it.

    Args:
        batch_sizes: Sizes that batches have; a batch is padded up to one of them.
        max_batch_pixels: Limit on batch × height × width; None: that of each model's engine.
        wait_s: Seconds to wait for a batch to fill.
        observe_batch: Told the number of photographs in each batch.
        watchdog: Told what runs.

    Attributes:
        closed: Whether it has been told to end.
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
        self._waiting: deque[Pending] = deque()
        self._spare: deque[Pending] = deque()
        self._changed = threading.Condition()
        self.closed = False
        self._thread = threading.Thread(target=self._work, name="inference", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it takes photographs."""
        return self._thread.is_alive() and not self.closed

    @property
    def waiting(self) -> int:
        """What waits: photographs, and now and then a call."""
        return len(self._waiting)

    def submit(self, predictor: ImagePredictor, image: NDArray[np.uint8]) -> "Future[InferenceResult]":
        """Lets a prepared photograph [h, w, c] wait for `predictor`'s network; from any thread.

        Args:
            predictor: Holds the network.
            image: What its `prepare` returned.

        Raises:
            RuntimeError: If the thread has ended.
        """
        photograph = PendingPhotograph(predictor, image)
        self._append(photograph, self._waiting)
        return photograph.future

    def submit_call(self, function: Callable[[], T], *, when_idle: bool = False) -> "Future[T]":
        """Lets `function` wait for the thread, behind the photographs that wait; from any thread.

        Args:
            function: Is run alone.
            spare: Whether it is also behind whatever comes later, for as long as something waits.

        Raises:
            RuntimeError: If the thread has ended.
        """
        call = PendingCall(function, "shadow" if when_idle else "load")
        self._append(call, self._spare if when_idle else self._waiting)
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
        """Takes back what still waits, and cancels its future; what runs already goes on to its end."""
        with self._changed:
            for line in (self._waiting, self._spare):
                for item in [item for item in line if item.future is future]:
                    line.remove(item)
        future.cancel()

    def batch_sizes_for(self, predictor: ImagePredictor, shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the batch sizes that photographs prepared to `shape` [h, w, c] may have."""
        most = self.max_batch_pixels or predictor.batch_pixels
        return tuple(size for size in self.batch_sizes if size * shape[0] * shape[1] <= most) or (1,)

    def close(self, timeout_s: float) -> None:
        """Ends the thread after the batch that runs; what still waits is cancelled.

        A batch that takes longer than `timeout_s` is not waited for: nothing can end it but the process.
        """
        with self._changed:
            self.closed = True
            self._changed.notify()
        self._thread.join(timeout_s)
        with self._changed:
            waiting = [*self._waiting, *self._spare]
            self._waiting.clear()
            self._spare.clear()
        for item in waiting:
            item.future.cancel()

    def _append(self, item: Pending, line: deque[Any]) -> None:
        with self._changed:
            if not self.alive:
                raise RuntimeError("The inference thread has ended.")
            line.append(item)
            self._changed.notify()

    # === On the thread ===

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                with self._watchdog.watch(batch[0].step):
                    results = self._run(batch)
            except BaseException as error:  # whatever it is, somebody waits for it
                _fail(batch, error)
            else:
                _resolve(batch, results)
                del results
            del batch  # a thread that waits holds no photograph

    def _next_batch(self) -> list[Pending]:
        """Takes what to run next, all of one kind, the oldest first; nothing if the thread shall end."""
        with self._changed:
            while not self.closed:
                if self._waiting or self._spare:
                    if self._wait_s and self._fill():
                        continue
                    if taken := [item for item in self._take() if item.future.set_running_or_notify_cancel()]:
                        return taken
                else:
                    self._changed.wait()
        return []

    def _fill(self) -> bool:
        """Waits once for a batch to fill; returns whether what waits must be looked at again."""
        oldest = self._waiting[0] if self._waiting else self._spare[0]
        if isinstance(oldest, PendingCall) or time.perf_counter() - oldest.submitted >= self._wait_s:
            return False
        most = self.batch_sizes_for(oldest.predictor, oldest.image.shape)[-1]
        if sum(oldest.batches_with(item) for item in self._waiting) >= most:
            return False
        self._changed.wait(oldest.submitted + self._wait_s - time.perf_counter())
        return True

    def _take(self) -> list[Pending]:
        if not self._waiting:
            return [self._spare.popleft()]
        oldest = self._waiting[0]
        fitting = [item for item in self._waiting if oldest.batches_with(item)]
        if isinstance(oldest, PendingPhotograph):
            sizes = self.batch_sizes_for(oldest.predictor, oldest.image.shape)
            fitting = fitting[: choose_batch(len(fitting), sizes)[0]]
        for item in fitting:
            self._waiting.remove(item)
        return fitting

    def _run(self, batch: list[Pending]) -> list[Any]:
        """Returns the results of `batch`, which is one call or photographs of one kind."""
        if isinstance(batch[0], PendingCall):
            return [batch[0].function()]
        return self._infer_batch([item for item in batch if isinstance(item, PendingPhotograph)])

    def _infer_batch(self, photographs: list[PendingPhotograph]) -> list[InferenceResult]:
        begun = time.perf_counter()
        first, count = photographs[0], len(photographs)
        _, size = choose_batch(count, self.batch_sizes_for(first.predictor, first.image.shape))
        images = [photograph.image for photograph in photographs]
        images += images[-1:] * (size - count)
        logits = first.predictor.infer(np.stack(images))
        infer_ms = (time.perf_counter() - begun) * 1000
        self._observe_batch(count)
        return [
            InferenceResult(logits, row, (begun - photograph.submitted) * 1000, infer_ms, count)
            for row, photograph in enumerate(photographs)
        ]


def choose_batch(waiting: int, sizes: Sequence[int]) -> tuple[int, int]:
    """Chooses how many of `waiting` photographs to take, and the one of `sizes` (ascending) to pad them to.

    A batch is padded up if photographs fill at least three quarters of it, otherwise the largest
    size that they fill is taken and the rest waits for the next one.
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
