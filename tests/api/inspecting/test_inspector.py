"""The limits of a photograph are released once, whatever fails, and nothing keeps its pixels in memory."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from api.errors import RequestError
from api.http.admission import AdmissionLimit
from api.inference.memory_budget import MemoryBudget
from api.inference.watchdog import Watchdog
from api.inspecting.encoded_photograph import EncodedPhotograph
from api.inspecting.inspector import Inspector
from api.models.registry import ServedModel
from api.settings import Settings
from segdec.images import encode_png
from segdec.schemas import ModelIdentity
from tests.api.conftest import part_image
from tests.api.inference.test_inference_thread import thread

pytestmark = pytest.mark.anyio
IDENTITY = ModelIdentity(name="stub", version="1", sha256=None)
PART = EncodedPhotograph(encode_png(part_image()), "The image")


@asynccontextmanager
async def inspector() -> AsyncIterator[Inspector]:
    """At the end of the block, all limits must have been released."""
    watchdog = Watchdog(stall_s=60, restart_after_s=60)
    queue = AdmissionLimit(4, "queue_full", "photographs", 1)
    memory = MemoryBudget(2**32, 0, 10**6, 1)
    settings = Settings(model=Path("unused"))
    async with thread(batch_sizes=(1,), watchdog=watchdog) as inference:
        with ThreadPoolExecutor(1) as threads:
            yield Inspector(settings, queue, memory, threads, inference, watchdog, Mock(), Mock())
            async with asyncio.timeout(30):
                while queue.admitted:
                    await asyncio.sleep(0.001)
            assert memory.reserved_bytes == 0


async def inspect(
    inspector: Inspector,
    predictor: Any,
    source: Any = PART,
    make_answer: Any = lambda _: "answer",
    left_s=30.0,
) -> Any:
    model = ServedModel(IDENTITY, ("stable",), predictor)
    with inspector.open(model, time.perf_counter() + left_s) as inspection:
        inferred = await inspection.infer(source)
        del source
        _, answer = await inspection.encode(inferred, make_answer)
    return answer


def fail(*_: object, **__: object) -> Any:
    raise RuntimeError("broken")


@pytest.mark.parametrize("step", ["prepare", "infer", "interpret", "make_answer"])
async def test_failure_of_a_step_is_the_answer(predictor, step):
    async with inspector() as running:
        assert await inspect(running, predictor) == "answer"
        words = {"make_answer": fail} if step == "make_answer" else {}
        if not words:
            setattr(predictor, step, fail)
        with pytest.raises(RuntimeError, match="broken"):
            await inspect(running, predictor, **words)


async def test_deadline_that_has_passed_admits_nothing(predictor):
    async with inspector() as running:
        with pytest.raises(RequestError) as refused:
            await inspect(running, predictor, left_s=-1.0)
        assert (refused.value.code, running.queue.total) == ("deadline_passed", 0)


async def test_photograph_abandoned_during_decoding_counts_until_then_and_is_not_inferred(predictor):
    decoding, proceed = threading.Event(), threading.Event()
    prepare = predictor.prepare

    def wait(image: Any) -> Any:
        decoding.set()
        assert proceed.wait(timeout=30)
        return prepare(image)

    predictor.prepare = wait
    async with inspector() as running:
        answer = asyncio.create_task(inspect(running, predictor))
        await asyncio.to_thread(decoding.wait)
        answer.cancel()
        await asyncio.wait([answer])
        assert answer.cancelled()
        assert running.queue.admitted == 1
        assert running.memory.reserved_bytes > 0
        proceed.set()
    assert not predictor.shapes


async def test_nothing_keeps_an_answered_photograph(predictor):
    """Garbage collection is rare in a large process; until then the memory would not be counted."""

    class Pixels(np.ndarray):
        """Supports weak references."""

    gc.disable()
    try:
        async with inspector() as running:
            pixels = part_image().view(Pixels)
            alive = weakref.ref(pixels)
            await inspect(running, predictor, pixels)
            del pixels
            await running.inference_thread.call(lambda: None)  # the thread drops its last batch
            await asyncio.get_running_loop().run_in_executor(running.image_threads, lambda: None)
            assert alive() is None
    finally:
        gc.enable()
