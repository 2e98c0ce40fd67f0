"""One photograph in the threads: each step hands it to the next, and the event loop waits for the last."""

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

from api.batching import ImagePredictor, InferenceResult, InferenceThread
from api.deadlines import deadline_passed
from api.watchdog import Watchdog
from segdec.errors import SegdecError

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Threads(NamedTuple):
    """The threads that work on photographs: some decode and encode, one runs the network."""

    image: Executor
    inference: InferenceThread
    watchdog: Watchdog


class _LeftError(Exception):
    """A step that was not begun, because nobody waits for the photograph any more."""


class PhotographJob(Generic[T]):
    """Decodes one photograph, runs the network on it and makes its answer.

    Threads cannot be interrupted. Where nobody waits any more, because the deadline passed, the client went
    or the service stops, a step that runs goes on for nobody and holds the photograph in memory. So the
    admission is given back when no thread has it, and not with the answer. Only what waits for the network is
    taken back at once.

    Args:
        threads: Do the steps.
        admission: Is entered while the photograph is worked on.
        decode: Makes the network's input [h, w, c], in an image thread.
        predictor: Holds the network.
        encode: Makes the answer of the network's result, in an image thread.
    """

    def __init__(
        self,
        threads: Threads,
        admission: AbstractContextManager[object],
        decode: Callable[[], NDArray[np.uint8]],
        predictor: ImagePredictor,
        encode: Callable[[InferenceResult], T],
    ) -> None:
        self._threads = threads
        self._admission = admission
        self._decode = decode
        self._predictor = predictor
        self._encode = encode
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting: Future[InferenceResult] | None = None
        self._left = False

    async def run(self, deadline: float) -> T:
        """Returns the answer.

        Args:
            deadline: `time.perf_counter` until which it is waited for, whatever the threads do.

        Raises:
            RequestError: 504 at the deadline, or what the admission refuses with.
        """
        left_s = deadline - time.perf_counter()
        if left_s <= 0:
            raise deadline_passed()
        self._admission.__enter__()
        timer = self._loop.call_later(left_s, self._give_up)
        try:
            self._hand_on(self._decode_image)
            return await self._answer
        finally:
            timer.cancel()
            self._leave()
            if not self._answer.cancelled():
                self._answer.exception()  # seen, also where the client went in the same moment

    def _give_up(self) -> None:
        if not self._answer.done():
            self._answer.set_exception(deadline_passed())

    def _leave(self) -> None:
        self._left = True
        if self._waiting is not None and not self._waiting.done():
            self._threads.inference.withdraw(self._waiting)

    def _end(self, answer: T | None, error: BaseException | None) -> None:
        """Called once, when no thread has the photograph any more."""
        self._admission.__exit__(None, None, None)
        if self._answer.done():
            if error is not None and not isinstance(error, SegdecError | _LeftError):
                logger.error("A photograph that nobody waited for any more failed", exc_info=error)
        elif isinstance(error, _LeftError):  # the threads have ended
            self._answer.cancel()
        elif error is not None:
            self._answer.set_exception(error)
        else:
            self._answer.set_result(answer)  # type: ignore[arg-type]  # without an error there is one

    # === In the threads ===

    def _hand_on(self, step: Callable[[], None]) -> None:
        """Lets `step` wait for an image thread; what goes wrong in it ends the job."""
        try:
            self._threads.image.submit(step).add_done_callback(self._see)
        except RuntimeError as error:  # the threads have ended
            self._tell(None, error)

    def _see(self, step: "Future[Any]") -> None:
        error = _failure(step)
        if error is not None:
            self._tell(None, error)

    def _decode_image(self) -> None:
        self._check_left()
        with self._threads.watchdog.watch("decode"):
            image = self._decode()
        self._waiting = waiting = self._threads.inference.submit(self._predictor, image)
        if self._left:  # since it was looked at last; now that it can be found, whoever leaves takes it back
            self._threads.inference.withdraw(waiting)
        waiting.add_done_callback(self._encode_later)

    def _encode_later(self, inferred: "Future[InferenceResult]") -> None:
        error = _failure(inferred)
        if error is None:
            self._hand_on(partial(self._encode_answer, inferred.result()))
        else:
            self._tell(None, error)

    def _encode_answer(self, result: InferenceResult) -> None:
        self._check_left()
        with self._threads.watchdog.watch("encode"):
            answer = self._encode(result)
        self._tell(answer, None)

    def _check_left(self) -> None:
        if self._left:
            raise _LeftError

    def _tell(self, answer: T | None, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            self._loop.call_soon_threadsafe(self._end, answer, error)


def _failure(work: "Future[Any]") -> BaseException | None:
    return _LeftError() if work.cancelled() else work.exception()
