"""Runs a model on photographs of data sets, while inspections go first."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from api.http.admission import AdmissionLimit
from api.inference.inference_thread import ImagePredictor, InferenceThread
from api.inference.memory_budget import MemoryBudget, MemoryFullError, PhotographCost
from api.inspecting.encoded_photograph import EncodedPhotograph
from api.inspecting.settings import InspectionSettings
from api.models.registry import ServedModel
from segdec.artifact import PhotographComparison, compare_photograph, compare_surface
from segdec.engines import Logits
from segdec.inference.postprocessing import Prediction
from segdec.photograph_check import Vector, measure_photograph

Answer = TypeVar("Answer")

IDLE_CHECK_S = 0.02
"""Time between two looks whether the service inspects photographs."""
MAX_WAIT_S = 2.0
"""Longest wait until it does not; then the photograph is decoded anyway."""
MEMORY_RETRY_S = 0.5
"""Wait while the memory is full."""


@dataclass(frozen=True)
class BackgroundResult:
    """What a model says about a photograph.

    Attributes:
        prediction: None if the photograph is refused.
        unlike: How it is unlike the photographs of the training; None if it is like them.
        measured: What `measure_photograph` measures, for comparisons with other photographs.
    """

    prediction: Prediction | None
    unlike: str | None
    measured: Mapping[str, Vector] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class _Prepared:
    """A decoded photograph: its size, the input of the network, its measures, how it compares with the
    training.
    """

    size: tuple[int, int]
    image: NDArray[np.uint8]
    measured: Mapping[str, Vector]
    comparison: PhotographComparison


class BackgroundInspector:
    """Inspects one photograph at a time. Its results are not counted, recorded or sent anywhere.

    Args:
        settings: Limits of photographs, and whether those that certainly show something else than the
            training are refused.
        queue: Counts the inspections in progress.
        memory: Of all photographs.
        inference_thread: Runs the models; inspections that arrive meanwhile go first.
    """

    def __init__(
        self,
        settings: InspectionSettings,
        queue: AdmissionLimit,
        memory: MemoryBudget,
        inference_thread: InferenceThread,
    ) -> None:
        self._settings, self._queue = settings, queue
        self._memory, self._inference_thread = memory, inference_thread

    async def inspect(
        self, model: ServedModel, photograph: EncodedPhotograph, *, as_served: bool = False
    ) -> BackgroundResult:
        """Inspects a photograph. `as_served`: the label may be `review`, as in an answer to a client.

        Raises:
            ImageError: If it cannot be decoded, or is larger than the service accepts.
            RequestError: 413 if the memory does not suffice for it.
        """
        return await self._call_when_idle(partial(self._inspect, model, photograph, as_served))

    async def measure(self, model: ServedModel, photograph: EncodedPhotograph) -> Mapping[str, Vector]:
        """Measures a photograph as `inspect` does, without an inspection; raises as that."""
        return await self._call_when_idle(partial(self._measure, model, photograph))

    async def _call_when_idle(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        while True:
            await self._wait_until_idle()
            try:
                return await call()
            except MemoryFullError:
                await asyncio.sleep(MEMORY_RETRY_S)

    async def _wait_until_idle(self) -> None:
        for _ in range(round(MAX_WAIT_S / IDLE_CHECK_S)):
            if not (self._queue.admitted or self._inference_thread.waiting):
                return
            await asyncio.sleep(IDLE_CHECK_S)

    async def _inspect(
        self, model: ServedModel, photograph: EncodedPhotograph, as_served: bool
    ) -> BackgroundResult:
        async with self._prepared(model, photograph) as prepared:
            if self._is_refused(prepared.comparison):
                return BackgroundResult(None, prepared.comparison.reason, prepared.measured)
            infer = partial(model.predictor.infer, prepared.image[np.newaxis])
            logits = await self._inference_thread.call(infer, when_idle=True)
            return await asyncio.to_thread(self._interpret, model.predictor, prepared, logits, as_served)

    async def _measure(self, model: ServedModel, photograph: EncodedPhotograph) -> Mapping[str, Vector]:
        async with self._prepared(model, photograph) as prepared:
            return prepared.measured

    @asynccontextmanager
    async def _prepared(self, model: ServedModel, photograph: EncodedPhotograph) -> AsyncIterator[_Prepared]:
        """Decodes a photograph; its memory is reserved and the model in use until the end of the block."""
        reserved: list[PhotographCost] = []
        reserve = partial(self._reserve, model, photograph.name, reserved)
        try:
            with model.usage:
                yield await asyncio.to_thread(self._prepare, model.predictor, photograph, reserve)
        finally:
            for cost in reserved:
                self._memory.release(cost)

    def _is_refused(self, comparison: PhotographComparison) -> bool:
        return comparison.refused and self._settings.unlike_training == "reject"

    def _reserve(
        self, model: ServedModel, name: str, reserved: list[PhotographCost], height: int, width: int
    ) -> None:
        cost = PhotographCost.estimate(model.cost, model.config.input, height, width)
        self._memory.check_size(cost, model.cost, f"{name} has {width} × {height} pixels")
        self._memory.reserve(cost)
        reserved.append(cost)

    # === In a thread ===

    def _prepare(
        self, predictor: ImagePredictor, photograph: EncodedPhotograph, reserve: "partial[None]"
    ) -> _Prepared:
        decoded = photograph.decode(self._settings, predictor.config.input.white_level, reserve)
        image = predictor.prepare(decoded.pixels)
        comparison = compare_photograph(predictor.config, decoded, image)
        size = decoded.pixels.shape[0], decoded.pixels.shape[1]
        return _Prepared(size, image, comparison.measured or measure_photograph(image), comparison)

    def _interpret(
        self, predictor: ImagePredictor, prepared: _Prepared, logits: Logits, as_served: bool
    ) -> BackgroundResult:
        config = predictor.config
        comparison = compare_surface(config, logits.surface_of(0), prepared.comparison)
        if self._is_refused(comparison):
            return BackgroundResult(None, comparison.reason, prepared.measured)
        threshold = None if as_served else config.thresholds.score
        unlike = as_served and comparison.reason is not None
        prediction = predictor.interpret(logits, 0, prepared.size, unlike=unlike, threshold=threshold)
        return BackgroundResult(prediction, comparison.reason, prepared.measured)
