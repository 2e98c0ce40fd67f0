import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from api.inference.inference_thread import InferenceResult, InferenceThread, choose_batch
from api.inference.watchdog import Watchdog
from tests.api.conftest import StubPredictor

SIZES = (1, 2, 4, 8)
SMALL, LARGE, FIRST = (8, 8, 1), (16, 8, 1), (24, 8, 1)


def image(shape: tuple[int, int, int], brightness: int) -> np.ndarray:
    return np.full(shape, brightness, np.uint8)


def defaults() -> dict[str, Any]:
    watchdog = Watchdog(stall_s=60, lost_s=60)
    return {
        "batch_sizes": SIZES,
        "max_batch_pixels": 10_000,
        "observe_batch": lambda _: None,
        "watchdog": watchdog,
    }


@asynccontextmanager
async def thread(**settings: Any) -> AsyncIterator[InferenceThread]:
    inference = InferenceThread(**(defaults() | settings))
    try:
        yield inference
    finally:
        inference.close(timeout_s=30)


async def infer(inference: InferenceThread, predictor: StubPredictor, image: np.ndarray) -> InferenceResult:
    return await asyncio.wrap_future(inference.submit(predictor, image))


async def occupy(
    inference: InferenceThread, predictor: StubPredictor, image: np.ndarray
) -> asyncio.Task[InferenceResult]:
    """Begins to infer `image`, which does not end before the predictor's gate is set."""
    predictor.gate.clear()
    running = asyncio.create_task(infer(inference, predictor, image))
    await asyncio.to_thread(predictor.entered.acquire)
    return running


async def behind_a_running_photograph(
    predictor: StubPredictor, inference: InferenceThread, submit: Callable[[], list[Coroutine[Any, Any, Any]]]
) -> list[Any]:
    """The outcomes of what `submit` brings while the thread is busy with a photograph of `FIRST` size."""
    first = await occupy(inference, predictor, image(FIRST, 0))
    tasks = [asyncio.create_task(work) for work in submit()]
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


def test_batch_sizes_without_one_pad_a_single_photograph():
    assert choose_batch(1, (4, 8)) == (1, 4)


def test_waiting_photographs_of_one_shape_go_through_the_network_together(predictor):
    sizes: list[int] = []

    async def scenario() -> list[InferenceResult]:
        async with thread(observe_batch=sizes.append) as inference:
            return await behind_a_running_photograph(
                predictor,
                inference,
                lambda: [
                    infer(inference, predictor, image(shape, brightness))
                    for shape, brightness in [
                        (SMALL, 10),
                        (LARGE, 20),
                        *((SMALL, b) for b in (30, 40, 50, 60)),
                    ]
                ],
            )

    answers = asyncio.run(scenario())
    # Five small ones fill a batch of four; the fifth was there after the large one.
    assert predictor.shapes[1:] == [(4, *SMALL), (1, *LARGE), (1, *SMALL)]
    assert sizes == [1, 4, 1, 1]
    scores = [float(answer.logits.mask[answer.row].max()) for answer in answers]
    assert scores == pytest.approx([b / 255 for b in (10, 20, 30, 40, 50, 60)])
    assert [answer.batch_size for answer in answers] == [4, 1, 4, 4, 4, 1]


def test_batch_holds_no_more_pixels_than_allowed(predictor):
    async def scenario() -> None:
        async with thread(max_batch_pixels=3 * 64) as inference:
            assert inference.batch_sizes_for(predictor, SMALL) == (1, 2)
            assert inference.batch_sizes_for(predictor, (100, 100, 1)) == (1,)
            predictor.batch_pixels = 64  # the setting has precedence
            inference.max_batch_pixels = None
            assert inference.batch_sizes_for(predictor, SMALL) == (1,)
            inference.max_batch_pixels = 3 * 64
            work = lambda: [infer(inference, predictor, image(SMALL, b)) for b in range(4)]  # noqa: E731
            await behind_a_running_photograph(predictor, inference, work)

    asyncio.run(scenario())
    assert predictor.shapes[1:] == [(2, *SMALL), (2, *SMALL)]


def test_photographs_of_two_models_are_not_mixed(predictor):
    other = StubPredictor()

    async def scenario() -> list[InferenceResult]:
        async with thread() as inference:
            work = lambda: [infer(inference, p, image(SMALL, 9)) for p in (predictor, other, predictor)]  # noqa: E731
            return await behind_a_running_photograph(predictor, inference, work)

    assert [answer.batch_size for answer in asyncio.run(scenario())] == [2, 1, 2]
    assert (predictor.shapes[1:], other.shapes) == ([(2, *SMALL)], [(1, *SMALL)])


def test_cancelled_photograph_is_skipped(predictor):
    async def scenario() -> None:
        async with thread() as inference:
            first = await occupy(inference, predictor, image(LARGE, 1))
            pending = inference.submit(predictor, image(SMALL, 1))
            inference.cancel(pending)
            assert pending.cancelled()
            assert not inference.waiting
            predictor.gate.set()
            await first
            await infer(inference, predictor, image(SMALL, 2))

    asyncio.run(scenario())
    assert predictor.shapes == [(1, *LARGE), (1, *SMALL)]


def test_failure_reaches_the_whole_batch_and_the_thread_continues(predictor):
    broken = StubPredictor()
    broken.failure = RuntimeError("out of memory")

    async def scenario() -> list[Any]:
        async with thread() as inference:
            work = lambda: [infer(inference, broken, image(SMALL, b)) for b in (1, 2)]  # noqa: E731
            failed = await behind_a_running_photograph(predictor, inference, work)
            return [*failed, await infer(inference, predictor, image(SMALL, 3))]

    first, second, answered = asyncio.run(scenario())
    assert first is second is broken.failure
    assert answered.batch_size == 1


def test_full_batch_does_not_wait_for_more(predictor):
    async def scenario() -> list[InferenceResult]:
        async with thread(batch_sizes=(1, 2), wait_s=3600.0) as inference:
            return await asyncio.gather(*(infer(inference, predictor, image(SMALL, b)) for b in (1, 2)))

    assert [answer.batch_size for answer in asyncio.run(scenario())] == [2, 2]


def test_close_does_not_wait_for_a_batch_that_hangs(predictor):
    async def scenario() -> list[Any]:
        inference = InferenceThread(**(defaults() | {"batch_sizes": (1,)}))
        predictor.gate.clear()
        tasks = [asyncio.create_task(infer(inference, predictor, image(SMALL, b))) for b in (1, 2)]
        await asyncio.to_thread(predictor.entered.acquire)
        await asyncio.to_thread(inference.close, timeout_s=0)
        (waited,) = await asyncio.gather(tasks[1], return_exceptions=True)
        assert not tasks[0].done()
        predictor.gate.set()
        return [await tasks[0], waited]

    first, second = asyncio.run(scenario())
    assert isinstance(first, InferenceResult)
    assert isinstance(second, asyncio.CancelledError)


def test_watchdog_watches_each_step(predictor):
    watchdog = Watchdog(stall_s=0, lost_s=3600)

    async def scenario() -> None:
        async with thread(watchdog=watchdog) as inference:
            task = await occupy(inference, predictor, image(SMALL, 1))
            assert watchdog.running_s("infer") > 0
            predictor.gate.set()
            await task
            assert await inference.call(lambda: watchdog.running_s("load")) > 0
            assert watchdog.running_s("infer") == 0

    asyncio.run(scenario())


def test_cancelled_call_leaves_the_queue(predictor):
    async def scenario() -> None:
        async with thread() as inference:
            first = await occupy(inference, predictor, image(SMALL, 1))
            call = asyncio.create_task(inference.call(lambda: 7))
            while not inference.waiting:
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert call.cancelled()
            assert not inference.waiting
            predictor.gate.set()
            await first

    asyncio.run(scenario())


def test_idle_call_runs_after_everything_else(predictor):
    """Also after what is submitted later."""

    async def scenario() -> list[str]:
        done: list[str] = []
        async with thread() as inference:
            first = await occupy(inference, predictor, image(FIRST, 0))
            when_idle = inference.submit_call(lambda: done.append("spare"), when_idle=True)
            calls = [inference.submit_call(lambda name=name: done.append(name)) for name in ("one", "two")]
            photograph = inference.submit(predictor, image(SMALL, 0))
            photograph.add_done_callback(lambda _: done.append("photograph"))
            assert inference.waiting == 3
            predictor.gate.set()
            await first
            for work in (when_idle, *calls, photograph):
                await asyncio.wrap_future(work)
        return done

    assert asyncio.run(scenario()) == ["one", "two", "photograph", "spare"]
