"""The steps of one photograph in threads, and what it is counted by until no thread holds it any more."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Self, TypeVar

from api.batching import ImagePredictor, InferenceResult, InferenceThread
from api.watchdog import Step, Watchdog
from segdec.errors import SegdecError

T = TypeVar("T")

logger = logging.getLogger(__name__)


class _SkippedError(Exception):
    """A step that was not begun, because its request had ended."""


class PhotographSteps:
    """Does one step after another in threads, as a block that admits the photograph.

    Threads cannot be interrupted. Where the block is left early, because a deadline passed, a client went or
    the service stops, a step that runs goes on for nobody and holds the photograph in memory. So the
    admission is given back when that step is over, and not with the block. What only waits is taken back.

    Args:
        admission: Is entered with the block.
        image_threads: Decode and encode.
        inference_thread: Runs the network.
        watchdog: Told what runs.
    """

    def __init__(
        self,
        admission: AbstractContextManager[object],
        image_threads: Executor,
        inference_thread: InferenceThread,
        watchdog: Watchdog,
    ) -> None:
        self._admission = admission
        self._image_threads = image_threads
        self._inference_thread = inference_thread
        self._watchdog = watchdog
        self._held = ExitStack()
        self._step: asyncio.Future[Any] | None = None
        self._left = False

    def __enter__(self) -> Self:
        """Admits the photograph."""
        self._held.enter_context(self._admission)
        return self

    def __exit__(self, *failure: object) -> None:
        """Gives the admission back, now or when the step that runs is over."""
        self._left = True
        if self._step is not None and not self._step.done():
            self._step.add_done_callback(self._end)
            return
        self._held.close()
        if self._step is not None and not self._step.cancelled():
            self._step.exception()  # seen, also where a deadline passed in the same moment

    async def run(self, step: Step, function: Callable[..., T], *arguments: Any) -> T:
        """Runs `function` in an image thread, unless the block is left before its turn."""

        def work() -> T:
            if self._left:
                raise _SkippedError
            with self._watchdog.watch(step):
                return function(*arguments)

        self._step = running = asyncio.get_running_loop().run_in_executor(self._image_threads, work)
        return await asyncio.shield(running)

    async def infer(self, predictor: ImagePredictor, image: Any) -> InferenceResult:
        """Runs the network on a prepared photograph [h, w, c], unless the block is left before its turn."""
        pending = self._inference_thread.submit(predictor, image)
        self._step = pending.future
        try:
            return await asyncio.shield(pending.future)
        except asyncio.CancelledError:
            self._inference_thread.withdraw(pending)
            raise

    def _end(self, step: "asyncio.Future[Any]") -> None:
        self._held.close()
        error = None if step.cancelled() else step.exception()
        if error is not None and not isinstance(error, SegdecError | _SkippedError):
            logger.error("A photograph that nobody waited for any more failed", exc_info=error)
