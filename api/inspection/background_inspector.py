"""Runs a model on photographs of data sets, while inspections go first."""

import asyncio
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from api.inference.inference_thread import ImagePredictor, InferenceThread
from api.inference.memory_budget import MemoryBudget, MemoryFullError, PhotographCost
from api.inspection.admission import AdmissionLimit
from api.inspection.encoded_photograph import EncodedPhotograph
from api.models.registry import ServedModel
from api.settings import Settings
from segdec.artifact import Comparison, compare_photograph, compare_surface
from segdec.engines import Logits
from segdec.inference.postprocessing import Prediction

QUIET_S = 0.02
"""Time between two looks whether the service inspects photographs."""
MAX_WAIT_S = 2.0
"""Longest wait until it does not; then the photograph is decoded anyway."""
MEMORY_RETRY_S = 0.5
"""Wait while the memory is full."""


@dataclass(frozen=True)
class BackgroundResult:
    """What a model says about a photograph.

    Attributes:
        prediction: Never `review`; None if the photograph is refused.
        unlike: How it is unlike the photographs of the training; None if it is like them.
    """

    prediction: Prediction | None
    unlike: str | None


@dataclass(frozen=True)
class _Prepared:
    """A decoded photograph: its size, the input of the network, how it compares with the training."""

    size: tuple[int, int]
    image: NDArray[np.uint8]
    comparison: Comparison


class BackgroundInspector:
    """Inspects one photograph at a time. Its results are not counted, recorded or sent anywhere.

    Args:
        settings: Limits of photographs, and whether those unlike the training are refused.
        queue: Counts the inspections in progress.
        memory: Of all photographs.
        inference_thread: Runs the models; inspections that arrive meanwhile go first.
    """

    def __init__(
        self,
        settings: Settings,
        queue: AdmissionLimit,
        memory: MemoryBudget,
        inference_thread: InferenceThread,
    ) -> None:
        self._settings, self._queue = settings, queue
        self._memory, self._inference_thread = memory, inference_thread

    async def inspect(self, model: ServedModel, photograph: EncodedPhotograph) -> BackgroundResult:
        """Inspects a photograph.

        Raises:
            ImageError: If it cannot be decoded, or is larger than the service accepts.
            RequestError: 413 if the memory does not suffice for it.
        """
        while True:
            await self._wait_until_idle()
            try:
                return await self._inspect(model, photograph)
            except MemoryFullError:
                await asyncio.sleep(MEMORY_RETRY_S)

    async def _wait_until_idle(self) -> None:
        for _ in range(round(MAX_WAIT_S / QUIET_S)):
            if not (self._queue.admitted or self._inference_thread.waiting):
                return
            await asyncio.sleep(QUIET_S)

    async def _inspect(self, model: ServedModel, photograph: EncodedPhotograph) -> BackgroundResult:
        reserved: list[PhotographCost] = []
        reserve = partial(self._reserve, model, photograph.name, reserved)
        try:
            with model.usage:
                prepared = await asyncio.to_thread(self._prepare, model.predictor, photograph, reserve)
                unlike = prepared.comparison.reason
                if unlike is not None and self._is_refused:
                    return BackgroundResult(None, unlike)
                infer = partial(model.predictor.infer, prepared.image[np.newaxis])
                logits = await self._inference_thread.call(infer, when_idle=True)
                return await asyncio.to_thread(self._interpret, model.predictor, prepared, logits)
        finally:
            for cost in reserved:
                self._memory.release(cost)

    @property
    def _is_refused(self) -> bool:
        """Whether photographs unlike the training are refused."""
        return self._settings.unlike_training == "reject"

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
        return _Prepared((decoded.pixels.shape[0], decoded.pixels.shape[1]), image, comparison)

    def _interpret(self, predictor: ImagePredictor, prepared: _Prepared, logits: Logits) -> BackgroundResult:
        config, comparison = predictor.config, prepared.comparison
        surface = compare_surface(config, logits.surface_of(0), comparison.measured)
        unlike = comparison.reason or surface.reason
        if unlike is not None and self._is_refused:
            return BackgroundResult(None, unlike)
        threshold = config.thresholds.score
        return BackgroundResult(predictor.interpret(logits, 0, prepared.size, threshold=threshold), unlike)
