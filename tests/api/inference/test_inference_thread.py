import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from api.inference.inference_thread import InferenceResult, InferenceThread, choose_batch
from api.inference.watchdog import Watchdog
from tests.api.conftest import StubPredictor

pytestmark = pytest.mark.anyio
SIZES = (1, 2, 4, 8)
SMALL, LARGE, FIRST = (8, 8, 1), (16, 8, 1), (24, 8, 1)


def image(shape: tuple[int, int, int], brightness: int) -> np.ndarray:
    return np.full(shape, brightness, np.uint8)


@asynccontextmanager
async def thread(close_s: float = 30, **settings: Any) -> AsyncIterator[InferenceThread]:
    defaults = {"batch_sizes": SIZES, "max_batch_pixels": 10_000, "observe_batch": lambda _: None}
    watchdog = Watchdog(stall_s=60, restart_after_s=60)
    inference = InferenceThread(**{**defaults, "watchdog": watchdog, **settings})
    try:
        yield inference
    finally:
        await asyncio.to_thread(inference.close, timeout_s=close_s)


async def infer(inference: InferenceThread, predictor: StubPredictor, image: np.ndarray) -> InferenceResult:
    return await asyncio.wrap_future(inference.submit(predictor, image))


async def occupy(
    inference: InferenceThread, predictor: StubPredictor, shape: tuple[int, int, int] = FIRST
) -> asyncio.Task[InferenceResult]:
    """Begins to infer a photograph, which does not end before the predictor's gate is set."""
    predictor.block()
    running = asyncio.create_task(infer(inference, predictor, image(shape, 0)))
    await asyncio.to_thread(predictor.entered.acquire)
    return running


async def behind_a_running_photograph(
    inference: InferenceThread, predictor: StubPredictor, *waiting: tuple[StubPredictor, np.ndarray]
) -> list[Any]:
    """The outcomes of what is submitted while the thread is busy with a photograph of `FIRST` size."""
    first = await occupy(inference, predictor)
    tasks = [asyncio.create_task(infer(inference, *item)) for item in waiting]
    while inference.waiting < len(tasks):
        await asyncio.sleep(0)
    predictor.gate.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(
    ("waiting", "taken", "padded"),
    [(1, 1, 1), (2, 2, 2), (3, 3, 4), (4, 4, 4), (5, 4, 4), (6, 6, 8), (7, 7, 8), (8, 8, 8), (20, 8, 8)],
)
def test_batch_is_padded_only_where_three_quarters_are_photographs(waiting, taken, padded):
    assert choose_batch(waiting, SIZES) == (taken, padded)
    assert choose_batch(1, (4, 8)) == (1, 4)


async def test_waiting_photographs_of_one_shape_and_model_go_through_the_network_together(predictor):
    sizes, other = [], StubPredictor()
    shapes = [(SMALL, 10), (LARGE, 20), *((SMALL, b) for b in (30, 40, 50, 60))]
    waiting = [(predictor, image(*shape)) for shape in shapes]
    async with thread(observe_batch=sizes.append) as inference:
        answers = await behind_a_running_photograph(inference, predictor, *waiting, (other, image(SMALL, 70)))
    # Five small ones fill a batch of four; the fifth was there after the large one.
    assert predictor.shapes[1:] == [(4, *SMALL), (1, *LARGE), (1, *SMALL)]
    assert other.shapes == [(1, *SMALL)]
    assert sizes == [1, 4, 1, 1, 1]
    scores = [float(answer.logits.mask[answer.row].max()) for answer in answers]
    assert scores == pytest.approx([b / 255 for b in (10, 20, 30, 40, 50, 60, 70)])
    assert [answer.batch_size for answer in answers] == [4, 1, 4, 4, 4, 1, 1]


async def test_batch_holds_no_more_pixels_than_allowed(predictor):
    async with thread(max_batch_pixels=3 * 64) as inference:
        assert inference.batch_sizes_for(predictor, SMALL) == (1, 2)
        assert inference.batch_sizes_for(predictor, (100, 100, 1)) == (1,)
        predictor.batch_pixels = 64  # the setting has precedence
        inference.max_batch_pixels = None
        assert inference.batch_sizes_for(predictor, SMALL) == (1,)
        inference.max_batch_pixels = 3 * 64
        waiting = [(predictor, image(SMALL, b)) for b in range(4)]
        await behind_a_running_photograph(inference, predictor, *waiting)
    assert predictor.shapes[1:] == [(2, *SMALL), (2, *SMALL)]


async def test_cancelled_photographs_and_calls_are_skipped(predictor):
    async with thread() as inference:
        first = await occupy(inference, predictor)
        pending = inference.submit(predictor, image(SMALL, 1))
        inference.cancel(pending)
        assert pending.cancelled() and not inference.waiting
        call = asyncio.create_task(inference.call(lambda: 7))
        while not inference.waiting:
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert call.cancelled() and not inference.waiting
        predictor.gate.set()
        await first
        await infer(inference, predictor, image(SMALL, 2))
    assert predictor.shapes == [(1, *FIRST), (1, *SMALL)]


async def test_failure_reaches_the_whole_batch_and_the_thread_continues(predictor):
    broken = StubPredictor()
    broken.failure = RuntimeError("out of memory")
    async with thread() as inference:
        waiting = [(broken, image(SMALL, b)) for b in (1, 2)]
        first, second = await behind_a_running_photograph(inference, predictor, *waiting)
        assert first is second is broken.failure
        assert (await infer(inference, predictor, image(SMALL, 3))).batch_size == 1


async def test_full_batch_does_not_wait_for_more(predictor):
    async with thread(batch_sizes=(1, 2), wait_s=3600.0) as inference:
        answers = await asyncio.gather(*(infer(inference, predictor, image(SMALL, b)) for b in (1, 2)))
    assert [answer.batch_size for answer in answers] == [2, 2]


async def test_close_does_not_wait_for_a_batch_that_hangs(predictor):
    async with thread(batch_sizes=(1,), close_s=0) as inference:
        first = await occupy(inference, predictor)
        second = asyncio.create_task(infer(inference, predictor, image(SMALL, 2)))
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await second
    assert not first.done()
    predictor.gate.set()
    assert isinstance(await first, InferenceResult)


async def test_watchdog_watches_each_step(predictor):
    watchdog = Watchdog(stall_s=0, restart_after_s=3600)
    async with thread(watchdog=watchdog) as inference:
        task = await occupy(inference, predictor)
        assert watchdog.running_s("infer") > 0
        predictor.gate.set()
        await task
        assert await inference.call(lambda: watchdog.running_s("load")) > 0
        assert watchdog.running_s("infer") == 0


async def test_idle_call_runs_after_everything_else(predictor):
    """Also after what is submitted later."""
    done: list[str] = []
    async with thread() as inference:
        first = await occupy(inference, predictor)
        when_idle = inference.submit_call(lambda: done.append("spare"), when_idle=True)
        calls = [inference.submit_call(lambda name=name: done.append(name)) for name in ("one", "two")]
        photograph = inference.submit(predictor, image(SMALL, 0))
        photograph.add_done_callback(lambda _: done.append("photograph"))
        assert inference.waiting == 3
        predictor.gate.set()
        await first
        for work in (when_idle, *calls, photograph):
            await asyncio.wrap_future(work)
    assert done == ["one", "two", "photograph", "spare"]
