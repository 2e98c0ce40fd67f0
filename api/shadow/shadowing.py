"""Lets a candidate see what is inspected, beside the model that answers and only while nobody waits."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import prod
from typing import Any

import numpy as np

from api.inference.inference_thread import ImagePredictor, InferenceThread
from api.inference.memory_budget import BYTES_PER_PIXEL, SPARE, MemoryBudget, PhotographMemory
from api.inspection.admission import AdmissionLimit, ByteLimit
from api.models.registry import ModelRegistry, ServedModel
from api.records.inspection import Inspection, Row, StoredInspection
from api.records.recording import Recording
from api.shadow.shadow_metrics import ShadowMetrics
from api.shadow.shadow_photograph import ShadowMemory, ShadowPhotograph
from segdec.inference.postprocessing import Prediction
from segdec.inference.preprocessing import input_size
from segdec.schemas import ModelIdentity

MAX_WAITING = 32
"""Photographs that wait for candidates."""
MEMORY_SHARE = SPARE / 4
"""Of the memory, for those that wait, or whose inspection is not answered yet."""
MAX_ROWS = 32
"""Answers that are stored together."""
MIN_QUIET_S = 0.02

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Waiting:
    """A photograph, and what was answered for it."""

    shadow: ShadowPhotograph
    record_id: int
    inspected_at: datetime
    label: str


class Shadowing:
    """Shows photographs to candidates, one at a time, when the service has nothing else to do.

    A photograph is begun when none is read, waits or is worked on, and none has come for as long as the last
    one took: so a client meets at most the one that has just begun. Nothing of it reaches a client: what
    cannot be done is skipped and counted. Belongs to the event loop.

    Args:
        models: Which versions are candidates.
        inference_thread: Runs them.
        memory: Knows what fits beside clients' photographs.
        limits: Of what clients send; while one of them has something, no candidate begins.
        bodies: Of that as well: it has something until an inspection is recorded.
        recording: Keeps what they say.
        metrics: Told what they answer and miss.
        sleep: Waits for as many seconds.
    """

    def __init__(
        self,
        models: ModelRegistry,
        inference_thread: InferenceThread,
        memory: MemoryBudget,
        limits: Sequence[AdmissionLimit],
        bodies: ByteLimit,
        recording: Recording,
        metrics: ShadowMetrics,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.metrics = metrics
        self._models, self._inference_thread, self._memory = models, inference_thread, memory
        self._limits, self._bodies, self._recording, self._sleep = limits, bodies, recording, sleep
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue(MAX_WAITING)
        self._held = ShadowMemory(MEMORY_SHARE * memory.limit_bytes)
        self._took_s = 0.0
        self._rows: list[tuple[ModelIdentity, Row]] = []
        self._failed: set[ModelIdentity] = set()
        self._stores = True
        self._work: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins; there is nothing to do where nothing is recorded."""
        if self._recording.record is not None:
            self._work = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Ends; what waits is forgotten."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])

    @contextmanager
    def open_shadow(self, model: ServedModel, threshold: float | None) -> Iterator[ShadowPhotograph | None]:
        """Yields what takes a photograph that `model` answers for its candidate; None if it has none.

        What is not submitted within the block is forgotten.
        """
        shadow = self._begin(model, threshold)
        try:
            yield shadow
        finally:
            if shadow is not None and not shadow.is_waiting:
                shadow.release()

    def _begin(self, model: ServedModel, threshold: float | None) -> ShadowPhotograph | None:
        candidate = self._models.candidate(model.identity.name)
        if candidate is None or self._work is None:
            return None
        ours, theirs = candidate.config, model.config
        if ours.input.white_level != theirs.input.white_level:
            self.metrics.count_skipped(candidate.identity, "white_level")
            return None
        channels = ours.network.input_channels, theirs.network.input_channels
        alike = ours.input == theirs.input and channels[0] == channels[1]
        return ShadowPhotograph(candidate.identity, alike, threshold, self._held)

    def submit(
        self, shadow: ShadowPhotograph | None, inspection: Inspection, kept: StoredInspection | None
    ) -> None:
        """Lets a photograph wait for its candidate, unless its inspection repeats an earlier one.

        Args:
            shadow: Has seen the photograph; None if there is no candidate.
            inspection: With what was answered.
            kept: What became of it; None if it is not recorded.
        """
        if shadow is None or (kept is not None and kept.original is not None):
            return
        if kept is None:
            self.metrics.count_skipped(shadow.candidate, "not_recorded")
        elif shadow.image is None or self._waiting.full():
            self.metrics.count_skipped(shadow.candidate, "busy")
        else:
            shadow.is_waiting = True
            row = inspection.row
            self._waiting.put_nowait(_Waiting(shadow, kept.record_id, row["inspected_at"], row["label"]))

    # === When nobody waits ===

    async def _run(self) -> None:
        while True:
            waiting = await self._waiting.get()
            try:
                await self.wait_until_idle()
                await self._answer(waiting)
            except Exception:  # nothing here may end it
                self._fail(waiting.shadow.candidate)
            waiting.shadow.release()
            if self._waiting.empty() or len(self._rows) >= MAX_ROWS:
                await self._store()

    async def wait_until_idle(self) -> None:
        """Returns when nothing has come for as long as a candidate takes, and nothing is under way."""
        while True:
            before = self._count_admitted()
            await self._sleep(max(self._took_s, MIN_QUIET_S))
            if self._count_admitted() == before and self._is_idle():
                return

    def _count_admitted(self) -> int:
        return sum(limit.total for limit in self._limits)

    def _is_idle(self) -> bool:
        admitted = any(limit.admitted for limit in self._limits)
        return not (admitted or self._bodies.reserved or self._inference_thread.waiting)

    async def _answer(self, waiting: _Waiting) -> None:
        shadow = waiting.shadow
        candidate = self._models.candidate(shadow.candidate.name)
        if candidate is None or candidate.identity != shadow.candidate:
            self.metrics.count_skipped(shadow.candidate, "replaced")
        elif not self._fits(candidate, shadow.size):
            self.metrics.count_skipped(shadow.candidate, "too_large")
        else:
            predict = partial(_predict, candidate.predictor, shadow)
            prediction, self._took_s = await self._inference_thread.call(predict, when_idle=True)
            self._rows.append((shadow.candidate, _make_row(waiting, prediction)))

    def _fits(self, candidate: ServedModel, size: tuple[int, int]) -> bool:
        prepared, cost = prod(input_size(candidate.config.input, *size)), candidate.cost
        if prepared * cost.s_per_pixel > self._memory.deadline_s:
            return False  # whoever comes meanwhile would wait for as long
        return self._memory.has_room(
            PhotographMemory(BYTES_PER_PIXEL * max(prod(size), prepared), cost.bytes_for(prepared))
        )

    def _fail(self, candidate: ModelIdentity) -> None:
        self.metrics.count_skipped(candidate, "failed")
        if candidate not in self._failed:
            self._failed.add(candidate)
            told = "The candidate %s %s failed at a photograph; further ones are counted only"
            logger.exception(told, candidate.name, candidate.version)

    async def _store(self) -> None:
        """Stores what has been answered; what cannot be stored is given up."""
        from api.records.review.shadow_results import (
            add_shadow_results,  # the group `record` has what it needs
        )

        rows, self._rows = self._rows, []
        record = self._recording.record
        if not rows or record is None:
            return
        try:
            await record.write(add_shadow_results, [row for _, row in rows])
        except Exception as error:  # whatever it is, the next ones are tried
            for candidate, _ in rows:
                self.metrics.count_skipped(candidate, "not_recorded")
            if self._stores:
                logger.warning("What candidates answer is not kept: %s", error)
            self._stores = False
            return
        self._stores = True
        for candidate, row in rows:
            self.metrics.count_answered(candidate, differs=row["differs"])


def _predict(predictor: ImagePredictor, shadow: ShadowPhotograph) -> tuple[Prediction, float]:
    """Returns what the candidate says, and the seconds that it took; in the inference thread."""
    begun = time.perf_counter()
    assert shadow.image is not None
    prepared = shadow.image if shadow.prepared_alike else predictor.prepare(shadow.image)
    logits = predictor.infer(prepared[np.newaxis])
    prediction = predictor.interpret(logits, 0, shadow.size, threshold=shadow.threshold)
    return prediction, time.perf_counter() - begun


def _make_row(waiting: _Waiting, prediction: Prediction) -> dict[str, Any]:
    candidate = waiting.shadow.candidate
    return {
        "record_id": waiting.record_id,
        "model": candidate.name,
        "version": candidate.version,
        "manifest_sha256": candidate.sha256,
        "inspected_at": waiting.inspected_at,
        "label": prediction.label,
        "score": prediction.score,
        "log_odds": prediction.log_odds,
        "differs": prediction.label != waiting.label,
    }
