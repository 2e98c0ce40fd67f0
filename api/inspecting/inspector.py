"""One photograph through the threads: decode, infer, encode."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from api.errors import RequestError
from api.http.admission import AdmissionLimit
from api.http.deadlines import deadline_timeout
from api.inference.inference_thread import InferenceResult, InferenceThread
from api.inference.memory_budget import MemoryBudget, PhotographCost
from api.inference.watchdog import Step, Watchdog
from api.inspecting.encoded_photograph import EncodedPhotograph
from api.inspecting.request_group import RequestGroup
from api.inspecting.settings import InspectionSettings
from api.metrics import Metrics
from api.models.active_plans import OTHER_STATIONS, ActivePlan
from api.models.registry import ServedModel
from segdec.artifact import PhotographComparison, compare_photograph, compare_surface
from segdec.errors import ImageError, SegdecError
from segdec.images import PIXELS, Photograph
from segdec.inference.postprocessing import Prediction
from segdec.plan.findings import Judgement
from segdec.schemas import ImageFacts, ModelIdentity

T = TypeVar("T")

Source = EncodedPhotograph | NDArray[np.uint8]
"""A file, or pixels [H, W, C]."""

OnDecoded = Callable[[NDArray[np.uint8], NDArray[np.uint8]], None]
"""Takes a photograph [H, W, C] and the input of the network [h, w, c], in an image thread."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PhotographFacts:
    """Facts about a decoded photograph, and how it compares with those of the training; times in
    milliseconds.
    """

    image: ImageFacts
    warnings: tuple[str, ...]
    comparison: PhotographComparison
    queue_ms: float
    decode_ms: float


class UnlikeTrainingError(ImageError):
    """A photograph that certainly shows something else than those of the training; `distances` are its
    `PhotographComparison.distances`.
    """

    def __init__(self, error: ImageError, image: ImageFacts, distances: Mapping[str, float]) -> None:
        super().__init__(str(error), code=error.code)
        self.image, self.distances = image, distances


@dataclass(frozen=True)
class InferredPhotograph:
    """A photograph after the network, without its pixels, because many may wait in memory. Only the logits
    may have the network's input, by which masks are refined.
    """

    facts: PhotographFacts
    result: InferenceResult

    @property
    def queue_ms(self) -> float:
        """Milliseconds in which it waited for threads."""
        return self.facts.queue_ms + self.result.queue_ms


@dataclass(frozen=True)
class InspectedPhotograph:
    """A photograph with its prediction, and with the verdict of the inspection plan, if there is one.
    `encode_started`: start of the step `encode`, in `time.perf_counter`.
    """

    model: ModelIdentity
    inferred: InferredPhotograph
    prediction: Prediction
    encode_started: float
    judged: tuple[ActivePlan, Judgement] | None = None

    @property
    def label(self) -> str:
        """The verdict: that of the plan, or of the model."""
        return self.prediction.label if self.judged is None else self.judged[1].label

    @property
    def image(self) -> ImageFacts:
        return self.inferred.facts.image

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.inferred.facts.warnings


@dataclass(frozen=True)
class Inspector:
    """Inspects photographs; `queue` and `memory` limit concurrent ones, `release_memory` returns free memory
    to the system before the next batch.
    """

    settings: InspectionSettings
    queue: AdmissionLimit
    memory: MemoryBudget
    image_threads: Executor
    inference_thread: InferenceThread
    watchdog: Watchdog
    metrics: Metrics
    release_memory: Callable[[], None]

    def open(self, model: ServedModel, deadline: float) -> "Inspection":
        """Returns a context manager for the inspection of one photograph by `model`; the caller must be in a
        block `with model.usage`. At `deadline`, in `time.perf_counter`, the client gets a 504.
        """
        return Inspection(self, model, deadline)

    def open_group(self) -> RequestGroup:
        """Returns the group for the photographs of one request. At most one batch of them is processed at the
        same time.
        """
        return RequestGroup(min(max(self.settings.batch_sizes), self.queue.limit))


class Inspection:
    """The inspection of one photograph: `infer`, then `encode`, in a `with` block.

    Threads cannot be interrupted. If the deadline passes, the client disconnects or the service stops, a step
    that runs in a thread continues, and the photograph stays in memory. So it counts for the limits until
    that step ends. A step that still waits for its thread is cancelled.
    """

    def __init__(self, inspector: Inspector, model: ServedModel, deadline: float) -> None:
        self._inspector = inspector
        self._model = model
        self._deadline = deadline
        self._admitted = False
        self._cost: PhotographCost | None = None
        self._step: Future[Any] | None = None
        self._threshold: float | None = None
        self._plan: ActivePlan | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        """Releases the photograph, or lets the step that runs do it."""
        step, self._step = self._step, None
        if step is None or step.done():
            self._release()
        else:
            step.add_done_callback(partial(self._on_abandoned_step, asyncio.get_running_loop()))

    async def infer(
        self,
        source: Source,
        on_decoded: OnDecoded | None = None,
        *,
        threshold: float | None = None,
        station: str = OTHER_STATIONS,
    ) -> InferredPhotograph:
        """Decodes the photograph, calls `on_decoded` with it, and runs the network on it.

        Args:
            source: The photograph.
            on_decoded: Takes it in an image thread.
            threshold: Replaces the model's image threshold, 0…1.
            station: Where it was taken, which determines the inspection plan.

        Raises:
            RequestError: 413 if it is too large, 503 if the queue or the memory is full, 504 at the deadline,
                400 for a threshold if a plan decides.
            ImageError: If it cannot be decoded, or the plan is for photographs of another size.
            UnlikeTrainingError: If it certainly shows something else than those of the training, and such
                photographs are rejected.
        """
        self._threshold, self._plan = threshold, self._model.plan_at(station)
        if self._plan is not None and threshold is not None:
            raise _threshold_with_plan(threshold, self._plan)
        async with deadline_timeout(self._deadline):
            self._inspector.queue.__enter__()
            self._admitted = True
            facts, prepared = await self._run("decode", self._decode, source, on_decoded, time.perf_counter())
            result = await self._wait(
                self._inspector.inference_thread.submit(self._model.predictor, prepared)
            )
        return InferredPhotograph(self._compare_surface(facts, result), result)

    def _compare_surface(self, facts: PhotographFacts, result: InferenceResult) -> PhotographFacts:
        """Adds what the network found unlike the photographs of the training; takes milliseconds at most."""
        surface, before = result.logits.surface_of(result.row), facts.comparison
        comparison = compare_surface(self._model.config, surface, before)
        new = {name: each for name, each in comparison.distances.items() if name not in before.distances}
        self._inspector.metrics.observe_distances(self._model.identity, new)
        warnings = *facts.warnings, *self._check(comparison, facts.image)
        return replace(facts, warnings=warnings, comparison=comparison)

    def _check(self, comparison: PhotographComparison, image: ImageFacts) -> tuple[str, ...]:
        """Returns its warnings, or raises an `UnlikeTrainingError`."""
        try:
            return comparison.check(self._inspector.settings.unlike_training)
        except ImageError as error:
            raise UnlikeTrainingError(error, image, comparison.distances) from error

    async def encode(
        self, inferred: InferredPhotograph, make_answer: Callable[[InspectedPhotograph], T]
    ) -> tuple[InspectedPhotograph, T]:
        """Interprets the logits, applies the inspection plan, makes the answer, counts it and releases the
        photograph.

        Args:
            inferred: What `infer` returned.
            make_answer: Runs in an image thread: it must not use anything that belongs to the event loop.

        Raises:
            RequestError: 504 at the deadline.
        """
        async with deadline_timeout(self._deadline):
            inspected, answer = await self._run("encode", self._encode, inferred, make_answer)
        self._release()
        self._inspector.metrics.observe_answer(
            inspected.model,
            inspected.label,
            inspected.prediction.score,
            inspected.prediction.log_odds,
            queue_ms=inferred.queue_ms,
            decode_ms=inferred.facts.decode_ms,
            infer_ms=inferred.result.infer_ms,
            encode_ms=_ms_since(inspected.encode_started),
        )
        return inspected, answer

    async def _run(self, step: Step, function: Callable[..., T], *arguments: Any) -> T:
        watched = partial(_run_watched, self._inspector.watchdog, step, function, *arguments)
        return await self._wait(self._inspector.image_threads.submit(watched))

    async def _wait(self, step: Future[T]) -> T:
        self._step = step
        try:
            return await asyncio.wrap_future(step)
        except asyncio.CancelledError:
            self._inspector.inference_thread.cancel(step)
            raise
        finally:
            del step  # an exception in it refers to this frame: without this, memory waits for a collection

    def _release(self) -> None:
        """Ends the admission, on the event loop."""
        self._step = None
        if self._cost is not None:
            self._inspector.memory.release(self._cost)
            self._cost = None
        if self._admitted:
            self._inspector.queue.__exit__()
            self._admitted = False

    def _on_abandoned_step(self, loop: asyncio.AbstractEventLoop, step: Future[Any]) -> None:
        """Releases the photograph after a step without a client; runs in any thread."""
        error = None if step.cancelled() else step.exception()
        if error is not None and not isinstance(error, SegdecError):
            logger.error("A photograph failed after its request had ended", exc_info=error)
        with suppress(RuntimeError):  # the event loop has ended
            loop.call_soon_threadsafe(self._release)

    # === In an image thread ===

    def _decode(
        self, source: Source, on_decoded: OnDecoded | None, submitted: float
    ) -> tuple[PhotographFacts, NDArray[np.uint8]]:
        started = time.perf_counter()
        photograph = self._read(source)
        if self._plan is not None:
            self._plan.judge.check_size(*photograph.pixels.shape[:2])
        predictor = self._model.predictor
        prepared = predictor.prepare(photograph.pixels)
        comparison = compare_photograph(predictor.config, photograph, prepared)
        self._inspector.metrics.observe_distances(self._model.identity, comparison.distances)
        if on_decoded is not None:
            on_decoded(photograph.pixels, prepared)
        image = ImageFacts(
            width=photograph.pixels.shape[1],
            height=photograph.pixels.shape[0],
            bit_depth=photograph.bit_depth,
            format=photograph.format,
            integrity=photograph.integrity,
        )
        self._check(comparison, image)
        queue_ms = (started - submitted) * 1000
        facts = PhotographFacts(image, photograph.warnings, comparison, queue_ms, _ms_since(started))
        return facts, prepared

    def _read(self, source: Source) -> Photograph:
        if isinstance(source, EncodedPhotograph):
            reserve = partial(self._reserve_memory, name=source.name)
            return source.decode(self._inspector.settings, self._model.config.input.white_level, reserve)
        self._reserve_memory(source.shape[0], source.shape[1], "The photograph")
        return Photograph(source, PIXELS, bit_depth=8)

    def _reserve_memory(self, height: int, width: int, name: str) -> None:
        """Reserves the photograph's memory once its size is known and before it is decoded."""
        memory, network = self._inspector.memory, self._model.cost
        config, has_plan = self._model.config.input, self._plan is not None
        cost = PhotographCost.estimate(network, config, height, width, has_plan=has_plan)
        described = f"{name} has {width} × {height} = {width * height:,} pixels"
        memory.check_size(cost, network, described, has_plan=has_plan)
        grows = memory.reserve(cost)
        self._cost = cost
        if grows:
            self._inspector.release_memory()

    def _encode(
        self, inferred: InferredPhotograph, make_answer: Callable[[InspectedPhotograph], T]
    ) -> tuple[InspectedPhotograph, T]:
        started = time.perf_counter()
        result, image = inferred.result, inferred.facts.image
        unlike = inferred.facts.comparison.reason is not None
        prediction = self._model.predictor.interpret(
            result.logits, result.row, (image.height, image.width), unlike=unlike, threshold=self._threshold
        )
        plan, judged = self._plan, None
        if plan is not None:
            judged = plan, plan.judge.judge(prediction, unlike=unlike)
        inspected = InspectedPhotograph(self._model.identity, inferred, prediction, started, judged)
        return inspected, make_answer(inspected)


def _run_watched(watchdog: Watchdog, step: Step, function: Callable[..., T], *arguments: Any) -> T:
    with watchdog.watch(step):
        return function(*arguments)


def _threshold_with_plan(threshold: float, plan: ActivePlan) -> RequestError:
    return RequestError(
        400,
        "threshold_with_plan",
        "The request has threshold={threshold}, but the inspection plan {plan} ({name}) decides. Send no "
        "threshold, or change the plan.",
        threshold=threshold,
        plan=plan.number,
        name=plan.plan.name,
    )


def _ms_since(moment: float) -> float:
    return (time.perf_counter() - moment) * 1000
