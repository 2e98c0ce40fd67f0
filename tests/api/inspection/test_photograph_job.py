"""What a photograph was counted by is given back once, whatever goes wrong, and nothing keeps its pixels."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import pytest

from api.errors import RequestError
from api.inference.inference_thread import InferenceResult, InferenceThread
from api.inference.watchdog import Watchdog
from api.inspection.photograph_job import PhotographJob, Threads
from tests.api.conftest import StubPredictor

IMAGE = np.zeros((8, 8, 1), np.uint8)


class Admission:
    """Counts how often it was entered and left."""

    def __init__(self) -> None:
        self.entered = self.left = 0

    def __enter__(self) -> Self:
        self.entered += 1
        return self

    def __exit__(self, *failure: object) -> None:
        self.left += 1


class Upload:
    """Can be referred to weakly."""

    def decode(self) -> Any:
        return IMAGE


class NoThreads(ThreadPoolExecutor):
    """Has no thread for anything after the first `done` steps."""

    def __init__(self, done: int) -> None:
        super().__init__(1)
        self._left = done

    def submit(self, *arguments: Any, **words: Any) -> Any:
        if not self._left:
            raise RuntimeError("can't start new thread")
        self._left -= 1
        return super().submit(*arguments, **words)


@contextmanager
def threads(image: Executor | None = None) -> Iterator[Threads]:
    """For use in an event loop."""
    watchdog = Watchdog(stall_s=60, lost_s=60)
    inference = InferenceThread(
        batch_sizes=(1,), max_batch_pixels=10_000, observe_batch=lambda _: None, watchdog=watchdog
    )
    with image or ThreadPoolExecutor(1) as executor:
        try:
            yield Threads(executor, inference, watchdog)
        finally:
            inference.close(timeout_s=30)


def run(
    admission: Admission,
    *,
    image: Executor | None = None,
    small: bool = False,
    decode: Callable[[], Any] = lambda: IMAGE,
    encode: Callable[[InferenceResult], Any] = lambda _: "answer",
    seconds: float = 30.0,
) -> Any:
    """The answer of one photograph; when all threads are done with it, the admission has been given back."""

    async def scenario() -> Any:
        with threads(image) as three:
            job = PhotographJob(three, admission, decode, StubPredictor(), encode, small=small)
            try:
                return await job.run(time.perf_counter() + seconds)
            finally:
                while admission.left < admission.entered:
                    await asyncio.sleep(0.001)

    return asyncio.run(scenario())


def fail(*_: object) -> Any:
    raise RuntimeError("broken")


@pytest.mark.parametrize("small", [False, True])
def test_answer(small):
    admission = Admission()
    assert run(admission, small=small) == "answer"
    assert (admission.entered, admission.left) == (1, 1)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("step", ["decode", "encode"])
def test_failure_of_a_step_is_the_answer(step, small):
    admission = Admission()
    with pytest.raises(RuntimeError, match="broken"):
        run(admission, small=small, **{step: fail})
    assert (admission.entered, admission.left) == (1, 1)


@pytest.mark.parametrize("done", [0, 1])
def test_failure_to_start_a_thread_is_the_answer(done):
    admission = Admission()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        run(admission, image=NoThreads(done))
    assert (admission.entered, admission.left) == (1, 1)


def test_deadline_that_has_passed_admits_nothing():
    admission = Admission()
    with pytest.raises(RequestError) as refused:
        run(admission, seconds=-1.0)
    assert (refused.value.code, admission.entered) == ("deadline_passed", 0)


def test_photograph_given_up_while_it_is_decoded_never_waits_for_the_network():
    admission, decoding, go_on = Admission(), threading.Event(), threading.Event()

    async def scenario() -> None:
        with threads() as three:
            waited = []
            submit = three.inference.submit
            three.inference.submit = lambda *work: waited.append(work) or submit(*work)  # type: ignore[method-assign]

            def decode() -> Any:
                decoding.set()
                assert go_on.wait(timeout=30)
                return IMAGE

            job = PhotographJob(three, admission, decode, StubPredictor(), lambda _: "answer", small=False)
            answer = asyncio.create_task(job.run(time.perf_counter() + 30))
            await asyncio.to_thread(decoding.wait)
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)
            assert answer.cancelled()
            go_on.set()
            while not admission.left:
                await asyncio.sleep(0.001)
            assert not waited

    asyncio.run(scenario())


@pytest.mark.parametrize("small", [False, True])
def test_nothing_keeps_an_answered_photograph(small):
    """Garbage collection comes rarely where much is alive; until then the memory would not be counted."""

    async def scenario() -> None:
        with threads() as three:
            upload = Upload()
            alive = weakref.ref(upload)
            job = PhotographJob(
                three, Admission(), upload.decode, StubPredictor(), lambda _: "answer", small=small
            )
            assert await job.run(time.perf_counter() + 30) == "answer"
            del job, upload
            while three.inference.waiting:
                await asyncio.sleep(0)
            await three.inference.call(lambda: None)  # the thread has let go of what it ran before
            await asyncio.get_running_loop().run_in_executor(three.image, lambda: None)
            assert alive() is None

    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()
