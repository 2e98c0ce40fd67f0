"""Runs candidates on inspected photographs while the service is idle."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from api.http.admission import AdmissionLimit, ByteLimit
from api.http.open_uploads import UploadLimit
from api.inference.inference_thread import ImagePredictor, InferenceThread
from api.inference.memory_budget import SPARE_SHARE, MemoryBudget, PhotographCost
from api.inspecting.shadow.shadow_metrics import ShadowMetrics
from api.inspecting.shadow.shadow_photograph import ShadowMemory, ShadowPhotograph
from api.models.active_plans import ActivePlan
from api.models.registry import ModelRegistry, ServedModel
from api.record.inspection import NewInspection, Row, StoredInspection
from api.record.recording import Recording
from segdec.artifact import UnlikeAction, compare_pixels, compare_surface
from segdec.inference.postprocessing import Prediction
from segdec.runtime.identifiers import NOT_INSPECTED
from segdec.schemas import ModelIdentity

MAX_WAITING = 32
"""Photographs that wait for candidates."""
MEMORY_SHARE = SPARE_SHARE / 4
"""Share of the memory for photographs that wait, or whose inspection is not answered yet."""
MAX_ROWS = 32
"""Answers that are stored in one transaction."""
MIN_QUIET_S = 0.02
"""Minimum time without a request before a candidate runs."""

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Waiting:
    """A photograph and its stored inspection, a row of `tables.inspections` without the id."""

    shadow: ShadowPhotograph
    record_id: int
    inspection: Row

    def has_other_plan(self, plan: ActivePlan | None) -> bool:
        """Returns whether another inspection plan than this one decided about it."""
        sha256 = None if plan is None else plan.stored.sha256
        label, own_sha256 = self.inspection["label"], self.inspection["plan_sha256"]
        return bool(label != NOT_INSPECTED and own_sha256 != sha256)


class Shadowing:
    """Runs candidates on one photograph at a time, in shadow mode: clients do not see their answers.

    A candidate runs if no request is in progress and none has arrived for as long as its last run took: so a
    client waits for at most the run that has just started. A photograph that it cannot take is skipped.
    Belongs to the event loop.

    Args:
        memory: Checks whether a photograph fits.
        limits: Limits of client requests. No candidate runs while any of them has admitted a request.
        bodies: Limit of request bodies. No candidate runs while bytes are reserved.
        recording: Stores the answers of candidates.
        unlike: Whether a candidate inspects a photograph that is unlike those of its training.
    """

    def __init__(
        self,
        models: ModelRegistry,
        inference_thread: InferenceThread,
        memory: MemoryBudget,
        limits: Sequence[AdmissionLimit | UploadLimit],
        bodies: ByteLimit,
        recording: Recording,
        metrics: ShadowMetrics,
        unlike: UnlikeAction,
    ) -> None:
        self.metrics, self._unlike = metrics, unlike
        self._models, self._inference_thread, self._memory = models, inference_thread, memory
        self._limits, self._bodies, self._recording = limits, bodies, recording
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(MAX_WAITING)
        self._photograph_memory = ShadowMemory(MEMORY_SHARE * memory.limit_bytes)
        self._last_run_s = 0.0
        self._rows: list[tuple[ModelIdentity, Row]] = []
        self._failed: set[ModelIdentity] = set()
        self._stores = True
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the task; without a record there is none."""
        if self._recording.record is not None:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Ends the task; photographs that wait are dropped."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @contextmanager
    def open_shadow(self, model: ServedModel, threshold: float | None) -> Iterator[ShadowPhotograph | None]:
        """Yields a shadow photograph for the candidate of `model`; None if it has none.

        Unless it is enqueued in the block, it is released at the end.
        """
        shadow = self._make_shadow(model, threshold)
        try:
            yield shadow
        finally:
            if shadow is not None and not shadow.is_waiting:
                shadow.release()

    def _make_shadow(self, model: ServedModel, threshold: float | None) -> ShadowPhotograph | None:
        candidate = self._models.candidate(model.identity.name)
        if candidate is None or self._task is None:
            return None
        ours, theirs = candidate.config, model.config
        if ours.input.white_level != theirs.input.white_level:
            self.metrics.count_skipped(candidate.identity, "white_level")
            return None
        channels = ours.network.input_channels, theirs.network.input_channels
        same_input = ours.input == theirs.input and channels[0] == channels[1]
        return ShadowPhotograph(candidate.identity, same_input, threshold, self._photograph_memory)

    def enqueue(
        self, shadow: ShadowPhotograph | None, inspection: NewInspection, stored: StoredInspection | None
    ) -> None:
        """Enqueues a photograph for its candidate, unless the `inspection` by the stable model repeats an
        earlier one, or was not stored (`stored` is None).
        """
        if shadow is None or (stored is not None and stored.original is not None):
            return
        if stored is None:
            self.metrics.count_skipped(shadow.candidate, "not_recorded")
        elif shadow.image is None or self._queue.full():
            self.metrics.count_skipped(shadow.candidate, "busy")
        else:
            shadow.is_waiting = True
            self._queue.put_nowait(_Waiting(shadow, stored.record_id, inspection.row))

    # === The task ===

    async def _run(self) -> None:
        while True:
            waiting = await self._queue.get()
            try:
                await self._wait_until_idle()
                await self._inspect(waiting)
            except Exception:  # the task must not end
                self._count_failed(waiting.shadow.candidate)
            waiting.shadow.release()
            if self._queue.empty() or len(self._rows) >= MAX_ROWS:
                await self._store()

    async def _wait_until_idle(self) -> None:
        """Returns when no request is in progress and none has arrived during the time of a run."""
        while True:
            before = self._count_admissions()
            await self._sleep(max(self._last_run_s, MIN_QUIET_S))
            if self._count_admissions() == before and self._is_idle():
                return

    def _count_admissions(self) -> int:
        return sum(limit.total for limit in self._limits)

    def _is_idle(self) -> bool:
        admitted = any(limit.admitted for limit in self._limits)
        return not (admitted or self._bodies.reserved or self._inference_thread.waiting)

    async def _inspect(self, waiting: _Waiting) -> None:
        shadow = waiting.shadow
        candidate = self._models.candidate(shadow.candidate.name)
        plan = None if candidate is None else candidate.plan_at(waiting.inspection["station"])
        if candidate is None or candidate.identity != shadow.candidate or waiting.has_other_plan(plan):
            self.metrics.count_skipped(shadow.candidate, "replaced")
            return
        config, has_plan = candidate.config.input, plan is not None
        cost = PhotographCost.estimate(candidate.cost, config, *shadow.size, has_plan=has_plan)
        if not self._memory.has_room(cost):
            self.metrics.count_skipped(shadow.candidate, "too_large")
            return
        predict = partial(_predict, candidate.predictor, shadow, self._unlike)
        prediction, is_unlike, took_s = await self._inference_thread.call(predict, when_idle=True)
        label = NOT_INSPECTED
        if prediction is not None:
            self._last_run_s, label = took_s, prediction.label
            if plan is not None:
                judgement = await asyncio.to_thread(plan.judge.judge, prediction, unlike=is_unlike)
                label = judgement.label
        self._rows.append((shadow.candidate, _make_row(waiting, prediction, label)))

    def _count_failed(self, candidate: ModelIdentity) -> None:
        self.metrics.count_skipped(candidate, "failed")
        if candidate not in self._failed:
            self._failed.add(candidate)
            message = "The candidate %s %s failed on a photograph; further failures are only counted"
            logger.exception(message, candidate.name, candidate.version)

    async def _store(self) -> None:
        """Stores the answers; those that cannot be stored are dropped."""
        # Imported here: it needs packages of the group `record`.
        from api.inspecting.shadow.shadow_results import add_shadow_results

        rows, self._rows = self._rows, []
        record = self._recording.record
        if not rows or record is None:
            return
        try:
            await record.write(add_shadow_results, [row for _, row in rows])
        except Exception as error:  # the next rows are tried
            for candidate, _ in rows:
                self.metrics.count_skipped(candidate, "not_recorded")
            if self._stores:
                logger.warning("The answers of candidates are not stored: %s", error)
            self._stores = False
            return
        self._stores = True
        for candidate, row in rows:
            is_inspected = row["label"] != NOT_INSPECTED
            self.metrics.count_answered(candidate, differs=row["differs"], inspected=is_inspected)


def _predict(
    predictor: ImagePredictor, shadow: ShadowPhotograph, unlike: UnlikeAction
) -> tuple[Prediction | None, bool, float]:
    """Returns the candidate's prediction, whether the photograph is unlike those of its training, and the
    time in seconds; in the inference thread.

    The prediction is None for a photograph that certainly shows something else than those of its training.
    """
    started = time.perf_counter()
    assert shadow.image is not None
    prepared = shadow.image if shadow.same_input else predictor.prepare(shadow.image)
    comparison, prediction = compare_pixels(predictor.config, shadow.size, prepared), None
    if unlike == "warn" or not comparison.refused:
        logits = predictor.infer(prepared[np.newaxis])
        comparison = compare_surface(predictor.config, logits.surface_of(0), comparison)
        if unlike == "warn" or not comparison.refused:
            prediction = predictor.interpret(
                logits, 0, shadow.size, unlike=comparison.reason is not None, threshold=shadow.threshold
            )
    return prediction, comparison.reason is not None, time.perf_counter() - started


def _make_row(waiting: _Waiting, prediction: Prediction | None, label: str) -> dict[str, Any]:
    candidate = waiting.shadow.candidate
    return {
        "record_id": waiting.record_id,
        "model": candidate.name,
        "version": candidate.version,
        "manifest_sha256": candidate.sha256,
        "inspected_at": waiting.inspection["inspected_at"],
        "label": label,
        "score": 0.0 if prediction is None else prediction.score,
        "log_odds": 0.0 if prediction is None else prediction.log_odds,
        "differs": label != waiting.inspection["label"],
    }
