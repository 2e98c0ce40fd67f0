"""A deadline is answered in time whatever the threads do, and what they still use counts for the limits."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import httpx
import pytest
from fastapi import FastAPI

from tests.api.conftest import PNG, ServiceClient, StubPredictor

SOON = {"Content-Type": "image/png", "X-Deadline-Ms": "50"}
INFER = "/v2/models/unnamed/infer"
DEADLINE_PASSED = (504, "deadline_passed")


@pytest.fixture
def client(make_app: Callable[..., FastAPI]) -> Iterator[ServiceClient]:
    with ServiceClient(make_app(image_threads=1)) as client:
        yield client


@pytest.fixture
def block(client, predictor: StubPredictor, monkeypatch) -> Iterator[Callable[[str], SimpleNamespace]]:  # noqa: ARG001
    """Blocks a step of the started service until `unblocked` is set or the test ends."""
    blocked = SimpleNamespace(entered=threading.Semaphore(0), unblocked=threading.Event())

    def block_step(step: str) -> SimpleNamespace:
        work = getattr(predictor, step)

        def wait(*arguments, **words):
            blocked.entered.release()
            assert blocked.unblocked.wait(timeout=60)
            return work(*arguments, **words)

        monkeypatch.setattr(predictor, step, wait)
        return blocked

    yield block_step
    blocked.unblocked.set()


def hang(client: ServiceClient, blocked: SimpleNamespace, part: bytes) -> None:
    """Sends requests with a deadline until one is in the step: on a busy machine the first may end before."""
    for attempt in range(8):
        headers = {**PNG, "X-Deadline-Ms": str(50 * 2**attempt)}
        answer = client.post("/v1/predict", content=part, headers=headers)
        assert refused(answer) == DEADLINE_PASSED
        if blocked.entered.acquire(timeout=0):
            return
    pytest.fail("The step was never reached.")


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def wait_until(client: ServiceClient, condition: Callable[[], bool]) -> None:
    async def wait() -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.001)

    client.run(wait)


@pytest.mark.parametrize("step", ["prepare", "infer", "interpret"])
def test_deadline_is_answered_while_a_step_hangs_and_only_that_photograph_counts(client, block, part, step):
    """Photographs that wait for the thread are cancelled: they never reach the step."""
    queue = client.app.state.service.inspection.queue
    blocked = block(step)
    hang(client, blocked, part)
    for _ in range(3):
        assert refused(client.post("/v1/predict", content=part, headers=SOON)) == DEADLINE_PASSED
    wait_until(client, lambda: queue.admitted == 1)
    blocked.unblocked.set()
    wait_until(client, lambda: queue.admitted == 0)
    assert not blocked.entered.acquire(timeout=0)
    assert client.post("/v1/predict", content=part, headers=PNG).status_code == 200


def test_deadline_applies_to_each_photograph_of_a_request(client, block, part):
    block("infer")
    files = [("file", (f"{number}.png", part)) for number in range(12)]
    answer = client.post("/v1/predict/batch", files=files, headers={"X-Deadline-Ms": "50"})
    assert answer.status_code == 200
    assert [item["problem"]["code"] for item in answer.json()["items"]] == ["deadline_passed"] * 12
    pixels = {"name": "pixels", "shape": [1, 4, 4, 1], "datatype": "UINT8", "data": [0] * 16}
    answer = client.post(INFER, json={"inputs": [pixels]}, headers={"X-Deadline-Ms": "50"})
    assert refused(answer) == DEADLINE_PASSED
    answer = client.post(INFER, json={"inputs": [pixels], "parameters": {"timeout": 50_000}})
    assert refused(answer) == DEADLINE_PASSED


def test_failure_after_the_deadline_is_logged(client, block, predictor, part, caplog):
    blocked = block("infer")
    hang(client, blocked, part)
    predictor.failure = RuntimeError("out of memory")
    blocked.unblocked.set()
    wait_until(client, lambda: client.app.state.service.inspection.queue.admitted == 0)
    (record,) = [record for record in caplog.records if record.exc_info]
    assert "out of memory" in str(record.exc_info[1])
