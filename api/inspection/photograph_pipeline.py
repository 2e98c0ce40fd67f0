"""One photograph through the service: decoded, prepared, inferred, interpreted and encoded as its answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from api.inference.inference_thread import InferenceResult
from api.inference.memory_budget import MemoryFullError
from api.inspection.photograph_job import PhotographJob, Threads
from api.models.registry import ServedModel
from api.routes.uploads import Upload
from api.service import Service
from segdec.config import ModelConfig
from segdec.images import Photograph
from segdec.imaging.png_chunks import read_size
from segdec.inference.postprocessing import Prediction
from segdec.inference.preprocessing import input_size
from segdec.schemas import ImageFacts, ModelIdentity

T = TypeVar("T")

See = Callable[[NDArray[np.uint8], NDArray[np.uint8]], None]
"""Takes a photograph [H, W, C] and what the network is given of it [h, w, c]; at once."""

SMALL_PIXELS = 128 * 128
SMALL_BYTES = 5 * 2**10
SMALL_GRID = 32 * 32
"""Photographs of no more pixels and bytes, the network's input included, whose mask has no more cells, are
decoded and answered by the event loop. It does nothing else meanwhile: for a fraction of a millisecond, and
for the worst file, or a mask all of dots, some 10 ms."""


@dataclass(frozen=True)
class InspectedPhotograph:
    """A photograph with its prediction, and what the steps up to there took, milliseconds.

    `interpreted_from` is the `time.perf_counter` at which the logits began to become an answer.
    """

    model: ModelIdentity
    image: ImageFacts
    warnings: tuple[str, ...]
    prediction: Prediction
    batch_size: int
    queue_ms: float
    decode_ms: float
    infer_ms: float
    interpreted_from: float


async def inspect_photograph(
    service: Service,
    model: ServedModel,
    source: Upload | NDArray[np.uint8],
    *,
    threshold: float | None,
    deadline: float,
    encode: Callable[[InspectedPhotograph], T],
    see: See | None = None,
) -> tuple[InspectedPhotograph, T]:
    """Inspects one photograph and encodes its answer.

    What is slow is done in threads: decoding and encoding in the image threads, unless the photograph is
    small, the network in the inference thread.

    Args:
        service: Has the queue and the threads.
        model: Answers; the caller counts its `usage`.
        source: An encoded photograph, or pixels uint8 [H, W, C].
        threshold: Replaces the model's image threshold, 0…1.
        deadline: `time.perf_counter` at which a photograph that is not answered is given up.
        encode: Makes the answer, also in an image thread: it may use nothing that belongs to the event loop.
        see: Is shown the photograph as well, in the same thread.

    Returns:
        The photograph with its prediction, and what `encode` made of it.

    Raises:
        RequestError: 413 if it is too large for the memory, 503 if the queue is full, 504 at the deadline.
        ImageError: If the photograph cannot be used.
    """
    inspection = _Inspection(service, model, source, threshold, encode, see)
    job = PhotographJob(
        Threads(service.image_threads, service.inference_thread, service.watchdog),
        inspection.place,
        inspection.decode,
        model.predictor,
        inspection.encode,
        small=is_small(source, model.config),
    )
    inspected, answer = await job.run(deadline)
    service.metrics.observe_answer(
        model.identity,
        inspected.prediction.label,
        inspected.prediction.score,
        inspected.prediction.log_odds,
        queue_ms=inspected.queue_ms,
        decode_ms=inspected.decode_ms,
        infer_ms=inspected.infer_ms,
        encode_ms=_ms_since(inspected.interpreted_from),
    )
    return inspected, answer


class RequestGroup:
    """The photographs of one request, which wait for one another's memory instead of being refused.

    They may be of any size, and a client that sent them together cannot send the rest later.
    """

    def __init__(self) -> None:
        self._running = 0
        self._ended = asyncio.Event()

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Does `work`, again after the end of another one as long as there is no memory for it beside them.

        Raises:
            MemoryFullError: If there is none and no other photograph of the request would make room.
        """
        while True:
            ended = self._ended
            self._running += 1
            waits = False
            try:
                return await work()
            except MemoryFullError:
                waits = self._running > 1 or ended.is_set()  # one may have made room meanwhile
                if not waits:
                    raise
            finally:
                self._running -= 1
                if not waits:  # those who wait try again, whatever came of this one
                    self._ended.set()
                    self._ended = asyncio.Event()
            await ended.wait()


async def gather_bounded(service: Service, works: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
    """Does several `works` of one request, in their order; the first failure ends all.

    No more than a batch has are done at a time, so that other requests are admitted beside them.
    """
    together = asyncio.Semaphore(min(max(service.settings.batch_sizes), service.queue.limit))

    async def run(work: Callable[[], Awaitable[T]]) -> T:
        async with together:
            await asyncio.sleep(0)  # small ones are done in one go: others have their turn between them
            return await work()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(work)) for work in works]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def is_small(source: Upload | NDArray[np.uint8], config: ModelConfig) -> bool:
    """Returns whether a photograph takes less time to decode and to answer than to hand to threads and back.

    Args:
        source: A file, of which only a PNG tells its size at once, or pixels [H, W, C].
        config: The model's network and input.
    """
    size: Sequence[int] | None
    if isinstance(source, Upload):
        size = read_size(source.data) if len(source.data) <= SMALL_BYTES else None
    else:
        size = source.shape[:2]
    if size is None or not 0 < prod(size) <= SMALL_PIXELS:
        return False
    prepared = prod(input_size(config.input, *size))
    return prepared <= min(SMALL_PIXELS, SMALL_GRID * config.network.mask_stride**2)


class _Inspection(Generic[T]):
    """What is done for one photograph before the network and after it.

    The photograph's own pixels are not kept: many may wait for the network.
    """

    def __init__(
        self,
        service: Service,
        model: ServedModel,
        source: Upload | NDArray[np.uint8],
        threshold: float | None,
        encode: Callable[[InspectedPhotograph], T],
        see: See | None,
    ) -> None:
        self.place = service.place(model)
        self._service, self._model = service, model
        self._source, self._threshold, self._encode, self._see = source, threshold, encode, see
        self._submitted = time.perf_counter()

    def decode(self) -> NDArray[np.uint8]:
        """Returns the network's input [h, w, c]; notes what the answer says of the photograph."""
        begun = time.perf_counter()
        self._waited_ms = (begun - self._submitted) * 1000
        photograph = self._photograph()
        if self.place.grows:  # before this one's turn
            self._service.release_memory()
        height, width = photograph.pixels.shape[:2]
        self._facts = ImageFacts(
            width=width,
            height=height,
            bit_depth=photograph.bit_depth,
            format=photograph.format,
            integrity=photograph.integrity,
        )
        self._warnings = photograph.warnings
        image = self._model.predictor.prepare(photograph.pixels)
        if self._see is not None:
            self._see(photograph.pixels, image)
        self._decode_ms = _ms_since(begun)
        return image

    def _photograph(self) -> Photograph:
        if isinstance(self._source, Upload):
            check_size = partial(self.place.reserve_memory, name=self._source.name)
            return self._source.decode(self._service.settings, self._model.config.input, check_size)
        self.place.reserve_memory(self._source.shape[0], self._source.shape[1], "The photograph")
        return Photograph(self._source, "pixels", bit_depth=8)

    def encode(self, result: InferenceResult) -> tuple[InspectedPhotograph, T]:
        """Returns the photograph with its prediction, and its answer."""
        interpreted_from = time.perf_counter()
        size = (self._facts.height, self._facts.width)
        prediction = self._model.predictor.interpret(
            result.logits, result.row, size, threshold=self._threshold
        )
        inspected = InspectedPhotograph(
            model=self._model.identity,
            image=self._facts,
            warnings=self._warnings,
            prediction=prediction,
            batch_size=result.batch_size,
            queue_ms=self._waited_ms + result.queue_ms,
            decode_ms=self._decode_ms,
            infer_ms=result.infer_ms,
            interpreted_from=interpreted_from,
        )
        return inspected, self._encode(inspected)


def _ms_since(moment: float) -> float:
    return (time.perf_counter() - moment) * 1000
