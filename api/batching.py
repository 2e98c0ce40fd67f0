"""Runs networks outside the event loop: one thread takes what waits, a batch of one shape at a time.

There is one such thread for a device, whatever number of models are served: they share the device.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from api.errors import RequestError
from segdec.config import ModelConfig
from segdec.engines import Logits
from segdec.postprocessing import Prediction

T = TypeVar("T")

FULL_ENOUGH = 0.75
"""Share of real photographs from which on a batch is padded up; emptier ones cost more than they gain."""


class ImagePredictor(Protocol):
    """What the service needs of a `segdec.predictor.Predictor`."""

    @property
    def config(self) -> ModelConfig:
        """The model's network, input, classes and thresholds."""

    @property
    def batch_pixels(self) -> int:
        """Pixels (B × H × W) beyond which a batch is not faster than its photographs one by one."""

    def warm_shape(self) -> tuple[int, int, int]:
        """Shape [h, w, c] of the prepared photograph that is likely to come first."""

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Photograph [H, W, C] to network input [h, w, c]."""

    def infer(self, prepared: NDArray[np.uint8]) -> Logits:
        """Network input [B, h, w, c] to logits."""

    def interpret(
        self, logits: Logits, row: int, size: tuple[int, int], *, threshold: float | None = None
    ) -> Prediction:
        """Logits of one photograph to its prediction."""


@dataclass(frozen=True)
class Inferred:
    """What the network said to one photograph: row `row` of `logits`; times in milliseconds."""

    logits: Logits
    row: int
    queue_ms: float
    infer_ms: float
    batch_size: int


@dataclass(eq=False)
class Job:
    """A prepared photograph that waits; times are seconds of `time.perf_counter`."""

    predictor: ImagePredictor
    image: NDArray[np.uint8]  # [h, w, c]
    deadline: float
    answer: "asyncio.Future[Inferred]"
    submitted: float = field(default_factory=time.perf_counter)

    def fits(self, other: "Job | Call") -> bool:
        """Whether both can go through the network together."""
        return (
            isinstance(other, Job)
            and self.predictor is other.predictor
            and self.image.shape == other.image.shape
        )


@dataclass(eq=False)
class Call:
    """A function that has to run on the inference thread, for example to warm a model."""

    function: Callable[[], Any]
    answer: "asyncio.Future[Any]"
    deadline: float = float("inf")

    def fits(self, other: "Job | Call") -> bool:
        """A call runs alone."""
        return other is self


class InferenceThread:
    """The one thread that may run models, and the photographs that wait for it.

    Photographs whose client has gone (their future was cancelled) or whose deadline has passed are
    skipped when the thread takes its next batch.

    Args:
        batch_sizes: Sizes that batches have; a batch is padded up to one of them.
        max_batch_pixels: Limit on batch × height × width; None: that of each model's engine.
        wait_s: Seconds to wait for a batch to fill.
        observe_batch: Told the number of photographs in each batch.

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
    ) -> None:
        self.batch_sizes = tuple(sorted(set(batch_sizes)))
        self.max_batch_pixels = max_batch_pixels
        self._wait_s = wait_s
        self._observe_batch = observe_batch
        self._waiting: deque[Job | Call] = deque()
        self._changed = threading.Condition()
        self.closed = False
        self._loop = asyncio.get_running_loop()
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

    async def predict(
        self, predictor: ImagePredictor, image: NDArray[np.uint8], deadline: float = float("inf")
    ) -> Inferred:
        """Runs `predictor`'s network on a prepared photograph [h, w, c].

        Args:
            predictor: Holds the network.
            image: What its `prepare` returned.
            deadline: `time.perf_counter` after which the photograph is given up.

        Raises:
            RequestError: 504, if the deadline passed while it waited.
        """
        answer: asyncio.Future[Inferred] = self._loop.create_future()
        await self._submit(Job(predictor, image, deadline, answer))
        return answer.result()

    async def call(self, function: Callable[[], T]) -> T:
        """Runs `function` on the thread, between two batches."""
        return await self._submit(Call(function, self._loop.create_future()))  # type: ignore[no-any-return]

    def sizes_for(self, predictor: ImagePredictor, shape: Sequence[int]) -> tuple[int, ...]:
        """The batch sizes that photographs prepared to `shape` [h, w, c] may have."""
        most = self.max_batch_pixels or predictor.batch_pixels
        return tuple(size for size in self.batch_sizes if size * shape[0] * shape[1] <= most) or (1,)

    def close(self) -> None:
        """Ends the thread after the batch that runs; what still waits is cancelled."""
        with self._changed:
            self.closed = True
            self._changed.notify()
        self._thread.join()
        for item in self._waiting:
            self._loop.call_soon_threadsafe(item.answer.cancel)
        self._waiting.clear()

    async def _submit(self, item: Job | Call) -> Any:
        with self._changed:
            if not self.alive:
                raise RuntimeError("The inference thread has ended.")
            self._waiting.append(item)
            self._changed.notify()
        try:
            return await item.answer
        except asyncio.CancelledError:  # its client has gone; its photograph goes too
            with self._changed, suppress(ValueError):  # it may run already
                self._waiting.remove(item)
            raise

    # === On the thread ===

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                results = self._run(batch)
            except BaseException as error:  # whatever it is, somebody waits for it
                self._loop.call_soon_threadsafe(_fail, batch, error)
            else:
                self._loop.call_soon_threadsafe(_resolve, batch, results)
                del results
            del batch  # a thread that waits holds no photograph

    def _next_batch(self) -> list[Job | Call]:
        """What to run next, all of one kind, the oldest first; empty when the thread shall end."""
        with self._changed:
            while not self.closed:
                self._skip_dead()
                if self._waiting:
                    if self._wait_s and self._fill():
                        continue
                    return self._take()
                self._changed.wait()
        return []

    def _skip_dead(self) -> None:
        now = time.perf_counter()
        for item in [item for item in self._waiting if item.answer.cancelled() or item.deadline < now]:
            self._waiting.remove(item)
            self._loop.call_soon_threadsafe(_fail, [item], deadline_passed())

    def _fill(self) -> bool:
        """Waits once for a batch to fill; whether the photographs that wait must be looked at again."""
        oldest = self._waiting[0]
        if isinstance(oldest, Call) or time.perf_counter() - oldest.submitted >= self._wait_s:
            return False
        most = self.sizes_for(oldest.predictor, oldest.image.shape)[-1]
        if sum(oldest.fits(item) for item in self._waiting) >= most:
            return False
        self._changed.wait(oldest.submitted + self._wait_s - time.perf_counter())
        return True

    def _take(self) -> list[Job | Call]:
        oldest = self._waiting[0]
        fitting = [item for item in self._waiting if oldest.fits(item)]
        if isinstance(oldest, Job):
            sizes = self.sizes_for(oldest.predictor, oldest.image.shape)
            fitting = fitting[: choose_batch(len(fitting), sizes)[0]]
        for item in fitting:
            self._waiting.remove(item)
        return fitting

    def _run(self, batch: list[Job | Call]) -> list[Any]:
        """The results of `batch`, which is one call or photographs of one kind."""
        if isinstance(batch[0], Call):
            return [batch[0].function()]
        return self._run_jobs([job for job in batch if isinstance(job, Job)])

    def _run_jobs(self, jobs: list[Job]) -> list[Inferred]:
        begun = time.perf_counter()
        _, size = choose_batch(len(jobs), self.sizes_for(jobs[0].predictor, jobs[0].image.shape))
        images = [job.image for job in jobs]
        images += images[-1:] * (size - len(jobs))
        logits = jobs[0].predictor.infer(np.stack(images))
        infer_ms = (time.perf_counter() - begun) * 1000
        self._observe_batch(len(jobs))
        return [
            Inferred(logits, row, (begun - job.submitted) * 1000, infer_ms, len(jobs))
            for row, job in enumerate(jobs)
        ]


def choose_batch(waiting: int, sizes: Sequence[int]) -> tuple[int, int]:
    """How many of `waiting` photographs to take, and the size of `sizes` (ascending) to pad them to.

    A batch is padded up when photographs fill at least three quarters of it, otherwise the largest
    size that they fill is taken and the rest waits for the next one.
    """
    larger = next((size for size in sizes if size >= waiting), None)
    filled = [size for size in sizes if size <= waiting]
    if larger is not None and (not filled or waiting >= FULL_ENOUGH * larger):
        return waiting, larger
    return filled[-1], filled[-1]


def _resolve(items: Sequence[Job | Call], results: Sequence[Any]) -> None:
    for item, result in zip(items, results, strict=True):
        if not item.answer.done():
            item.answer.set_result(result)


def _fail(items: Sequence[Job | Call], error: BaseException) -> None:
    for item in items:
        if not item.answer.done():
            item.answer.set_exception(error)


def deadline_passed() -> RequestError:
    """What is answered for a photograph that waited too long."""
    return RequestError(
        504,
        "deadline_passed",
        "The photograph's deadline passed while it waited. Send fewer at a time, or allow more time with "
        "X-Deadline-Ms.",
    )
