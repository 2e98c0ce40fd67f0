"""One photograph from its bytes to its answer: each step hands it to the next, whatever thread does that."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from api.inference.inference_thread import ImagePredictor, InferenceResult, InferenceThread
from api.inference.watchdog import Watchdog
from api.inspection.deadlines import deadline_error
from segdec.errors import SegdecError

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Threads(NamedTuple):
    """The threads that work on photographs: some decode and encode, one runs the network."""

    image: Executor
    inference: InferenceThread
    watchdog: Watchdog


class _AbandonedError(Exception):
    """A step that was not begun: nobody waits for the photograph any more, or the service has ended."""


class PhotographJob(Generic[T]):
    """Decodes one photograph, runs the network on it and makes its answer.

    Threads cannot be interrupted. Where nobody waits any more, because the deadline passed, the client went
    or the service stops, a step that runs goes on for nobody and holds the photograph in memory. So the
    admission is given back when no thread has it, and not with the answer. Only what waits for the network is
    taken back at once.

    Args:
        threads: Do the steps.
        admission: Is entered while the photograph is worked on.
        decode: Makes the network's input [h, w, c].
        predictor: Holds the network.
        encode: Makes the answer of the network's result.
        small: Whether `decode` and `encode` take less time than a change of threads. Then the event loop does
            them itself, else an image thread. What hangs there, nobody sees and no deadline ends.
    """

    def __init__(
        self,
        threads: Threads,
        admission: AbstractContextManager[object],
        decode: Callable[[], NDArray[np.uint8]],
        predictor: ImagePredictor,
        encode: Callable[[InferenceResult], T],
        *,
        small: bool,
    ) -> None:
        self._threads = threads
        self._admission = admission
        self._decode = decode
        self._predictor = predictor
        self._encode = encode
        self._small = small
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting: Future[InferenceResult] | None = None
        self._left = False

    async def run(self, deadline: float) -> T:
        """Returns the answer.

        Args:
            deadline: `time.perf_counter` until which it is waited for, whatever a thread does.

        Raises:
            RequestError: 504 at the deadline, or what the admission refuses with.
        """
        left_s = deadline - time.perf_counter()
        if left_s <= 0:
            raise deadline_error()
        self._admission.__enter__()
        timer = self._loop.call_later(left_s, self._give_up)
        try:
            if self._small:
                self._do(self._decode_image)
            else:
                self._submit(self._decode_image)
            return await self._answer
        finally:
            timer.cancel()
            self._leave()

    def _give_up(self) -> None:
        if not self._answer.done():
            self._answer.set_exception(deadline_error())

    def _leave(self) -> None:
        self._left = True
        if self._waiting is not None and not self._waiting.done():
            self._threads.inference.cancel(self._waiting)
        if self._answer.done() and not self._answer.cancelled():
            self._answer.exception()  # seen, also where the client went in the same moment

    def _end(self, answer: T | None, error: BaseException | None) -> None:
        """Is called once, on the event loop, when no thread has the photograph any more."""
        self._waiting = None  # it refers to this job, and both would keep the photograph
        self._admission.__exit__(None, None, None)
        if self._answer.done():
            if error is not None and not isinstance(error, SegdecError | _AbandonedError):
                logger.error("A photograph that nobody waited for any more failed", exc_info=error)
        elif isinstance(error, _AbandonedError):  # the service has ended
            self._answer.cancel()
        elif error is not None:
            self._answer.set_exception(error)
        else:
            self._answer.set_result(answer)  # type: ignore[arg-type]  # without an error there is one

    # === In an image thread, or on the event loop ===

    def _do(self, step: Callable[[], None]) -> None:
        """Does `step`; what goes wrong in it ends the job."""
        try:
            self._check_left()
            step()
        except BaseException as error:  # whatever it is, somebody waits for it
            self._tell(None, error)

    def _decode_image(self) -> None:
        with self._threads.watchdog.watch("decode"):
            image = self._decode()
        self._check_left()
        self._waiting = waiting = self._threads.inference.submit(self._predictor, image)
        if self._left:  # since it was looked at last; from now on, whoever leaves finds it
            self._threads.inference.cancel(waiting)
        waiting.add_done_callback(self.on_inference_done)

    def _encode_answer(self, result: InferenceResult) -> None:
        with self._threads.watchdog.watch("encode"):
            answer = self._encode(result)
        self._tell(answer, None)

    def _tell(self, answer: T | None, error: BaseException | None) -> None:
        if self._small:
            self._end(answer, error)
        else:
            self._call_loop(self._end, answer, error)

    def _check_left(self) -> None:
        if self._left:
            raise _AbandonedError

    # === In any thread ===

    def on_inference_done(self, inferred: "Future[InferenceResult]") -> None:
        """Takes what the network gave, or that the photograph was taken back from it."""
        error = _AbandonedError() if inferred.cancelled() else inferred.exception()
        if error is not None:
            self._call_loop(self._end, None, error)
            return
        step = partial(self._encode_answer, inferred.result())
        if self._small:
            self._call_loop(self._do, step)
        else:
            self._submit(step)

    def _submit(self, step: Callable[[], None]) -> None:
        try:
            self._threads.image.submit(self._do, step)
        except RuntimeError as error:  # there is no thread, and none can be started
            self._call_loop(self._end, None, error)

    def _call_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # it has ended, and nobody waits any more
            self._loop.call_soon_threadsafe(function, *arguments)
