"""One photograph through the service: decoded, prepared, inferred, interpreted and encoded as its answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from api.batching import InferenceResult
from api.deadlines import answered_by
from api.memory_budget import MemoryFullError, Place
from api.models.registry import ServedModel
from api.service import Service
from api.uploads import Upload
from segdec.images import Photograph
from segdec.postprocessing import Prediction
from segdec.schemas import ImageFacts, ModelIdentity

T = TypeVar("T")


@dataclass(frozen=True)
class PreparedPhotograph:
    """A photograph that waits for the network: its input [h, w, c], and what the answer says of it.

    The photograph's own pixels are not kept: many may wait.
    """

    image: NDArray[np.uint8]
    facts: ImageFacts
    warnings: tuple[str, ...]
    waited_ms: float
    decode_ms: float


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
) -> tuple[InspectedPhotograph, T]:
    """Inspects one photograph and encodes its answer.

    What is slow is done in threads: decoding and encoding in the image threads, the network in the inference
    thread.

    Args:
        service: Has the queue and the threads.
        model: Answers; the caller holds it `in_use`.
        source: An encoded photograph, or pixels uint8 [H, W, C].
        threshold: Replaces the model's image threshold, 0…1.
        deadline: `time.perf_counter` at which a photograph that is not answered is given up.
        encode: Makes the answer, in an image thread: it may use nothing that belongs to the event loop.

    Returns:
        The photograph with its prediction, and what `encode` made of it.

    Raises:
        RequestError: 413 if it is too large for the memory, 503 if the queue is full, 504 at the deadline.
        ImageError: If the photograph cannot be used.
    """
    async with answered_by(deadline):
        place = service.place(model)
        with service.hold(place) as steps:
            prepared = await steps.run("decode", _prepare, source, model, service, place, time.perf_counter())
            if place.grows:
                await service.give_back_memory()
            result = await steps.infer(model.predictor, prepared.image)
            inspected, answer = await steps.run("encode", _finish, model, prepared, result, threshold, encode)
    service.metrics.observe_answer(
        model.identity,
        inspected.prediction.label,
        inspected.prediction.score,
        queue_ms=inspected.queue_ms,
        decode_ms=inspected.decode_ms,
        infer_ms=inspected.infer_ms,
        encode_ms=_ms_since(inspected.interpreted_from),
    )
    return inspected, answer


class Siblings:
    """The photographs of one request, which wait for one another's memory instead of being refused.

    They may be of any size, and a client that sent them together cannot send the rest later.
    """

    def __init__(self) -> None:
        self._running = 0
        self._ended = asyncio.Event()

    async def attempt(self, work: Callable[[], Awaitable[T]]) -> T:
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

    async def attempt(work: Callable[[], Awaitable[T]]) -> T:
        async with together:
            return await work()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(attempt(work)) for work in works]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


# === In the image threads ===


def _prepare(
    source: Upload | NDArray[np.uint8],
    model: ServedModel,
    service: Service,
    place: Place,
    submitted: float,
) -> PreparedPhotograph:
    waited_ms, begun = _ms_since(submitted), time.perf_counter()
    if isinstance(source, Upload):
        check_size = partial(place.take_memory, name=source.name)
        photograph = source.decode(service.settings, model.config.input, check_size)
    else:
        place.take_memory(source.shape[0], source.shape[1], "The photograph")
        photograph = Photograph(source, "pixels", bit_depth=8)
    height, width = photograph.pixels.shape[:2]
    facts = ImageFacts(
        width=width,
        height=height,
        bit_depth=photograph.bit_depth,
        format=photograph.format,
        integrity=photograph.integrity,
    )
    image = model.predictor.prepare(photograph.pixels)
    return PreparedPhotograph(image, facts, photograph.warnings, waited_ms, _ms_since(begun))


def _finish(
    model: ServedModel,
    prepared: PreparedPhotograph,
    result: InferenceResult,
    threshold: float | None,
    encode: Callable[[InspectedPhotograph], T],
) -> tuple[InspectedPhotograph, T]:
    interpreted_from = time.perf_counter()
    size = (prepared.facts.height, prepared.facts.width)
    prediction = model.predictor.interpret(result.logits, result.row, size, threshold=threshold)
    inspected = InspectedPhotograph(
        model=model.identity,
        image=prepared.facts,
        warnings=prepared.warnings,
        prediction=prediction,
        batch_size=result.batch_size,
        queue_ms=prepared.waited_ms + result.queue_ms,
        decode_ms=prepared.decode_ms,
        infer_ms=result.infer_ms,
        interpreted_from=interpreted_from,
    )
    return inspected, encode(inspected)


def _ms_since(moment: float) -> float:
    return (time.perf_counter() - moment) * 1000
