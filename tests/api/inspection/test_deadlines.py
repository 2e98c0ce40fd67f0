"""A deadline is answered in time whatever the threads do, and what they hold stays counted."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest
from fastapi import FastAPI

from api.inspection.photograph_pipeline import SMALL_PIXELS
from segdec.images import encode_png
from tests.api.conftest import ServiceClient, StubPredictor, part_image

SOON = {"Content-Type": "image/png", "X-Deadline-Ms": "50"}
PNG = {"Content-Type": "image/png"}
INFER = "/v2/models/unnamed/infer"


SMALL = encode_png(part_image())
LARGE = encode_png(part_image(SMALL_PIXELS, 16))  # is decoded and answered by an image thread
SIZES = {"small": SMALL, "large": LARGE}


class Held:
    """A step of the model that does not return until it is let go."""

    def __init__(self, predictor: StubPredictor, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self._go_on = threading.Semaphore(0), threading.Event()
        work = getattr(predictor, step)

        def hold(*arguments, **words):
            self.entered.release()
            assert self._go_on.wait(timeout=60)
            return work(*arguments, **words)

        monkeypatch.setattr(predictor, step, hold)

    def let_go(self) -> None:
        self._go_on.set()


@pytest.fixture
def client(make_app: Callable[..., FastAPI]) -> Iterator[ServiceClient]:
    with ServiceClient(make_app(image_threads=1)) as client:
        yield client


@pytest.fixture
def hold(client, predictor: StubPredictor, monkeypatch) -> Iterator[Callable[[str], Held]]:  # noqa: ARG001
    """Holds a step of the started service up from now on, until the test is over."""
    held = []

    def hold_step(step: str) -> Held:
        held.append(Held(predictor, step, monkeypatch))
        return held[-1]

    yield hold_step
    for one in held:
        one.let_go()


def hang(client: ServiceClient, held: Held, part: bytes) -> None:
    """Asks with a deadline until the step hangs for it: on a busy machine the first ones may end before."""
    for attempt in range(8):
        headers = {**PNG, "X-Deadline-Ms": str(50 * 2**attempt)}
        answer = client.post("/v1/predict", content=part, headers=headers)
        assert refused(answer) == (504, "deadline_passed")
        if held.entered.acquire(timeout=0):
            return
    pytest.fail("The step was never reached.")


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def wait_until(client: ServiceClient, true: Callable[[], bool]) -> None:
    async def wait() -> None:
        async with asyncio.timeout(30):
            while not true():
                await asyncio.sleep(0.001)

    client.run(wait)


STEPS = [("prepare", "large"), ("infer", "large"), ("infer", "small"), ("interpret", "large")]


@pytest.mark.parametrize(("step", "size"), STEPS)
def test_deadline_is_answered_while_a_step_hangs_and_behind_it(client, hold, step, size):
    held, part = hold(step), SIZES[size]
    hang(client, held, part)
    for _ in range(3):
        answer = client.post("/v1/predict", content=part, headers=SOON)
        assert refused(answer) == (504, "deadline_passed")
    assert not held.entered.acquire(timeout=0)


def test_deadline_holds_for_each_of_several_photographs(client, hold):
    hold("infer")
    files = [("file", (f"{number}.png", LARGE if number % 2 else SMALL)) for number in range(12)]
    answer = client.post("/v1/predict/batch", files=files, headers={"X-Deadline-Ms": "50"})
    assert answer.status_code == 200
    assert [item["problem"]["code"] for item in answer.json()["items"]] == ["deadline_passed"] * 12


def test_deadline_holds_in_the_open_inference_protocol(client, hold):
    hold("infer")
    pixels = {"name": "pixels", "shape": [1, 4, 4, 1], "datatype": "UINT8", "data": [0] * 16}
    answer = client.post(INFER, json={"inputs": [pixels]}, headers={"X-Deadline-Ms": "50"})
    assert refused(answer) == (504, "deadline_passed")
    answer = client.post(INFER, json={"inputs": [pixels], "parameters": {"timeout": 50_000}})
    assert refused(answer) == (504, "deadline_passed")


@pytest.mark.parametrize(
    ("step", "size", "kept"), [(*step, kept) for step, kept in zip(STEPS, (3, 1, 1, 3), strict=True)]
)
def test_photograph_that_a_thread_holds_keeps_its_place(client, hold, step, size, kept):
    """It still takes memory. One that waited for the network alone is let go; the image thread's are not."""
    queue, part = client.app.state.service.queue, SIZES[size]
    held = hold(step)
    hang(client, held, part)
    for _ in range(2):
        client.post("/v1/predict", content=part, headers=SOON)
    wait_until(client, lambda: queue.admitted == kept)
    held.let_go()
    wait_until(client, lambda: queue.admitted == 0)
    assert client.post("/v1/predict", content=part, headers=PNG).status_code == 200


def test_photograph_given_up_before_its_decoding_is_not_decoded(client, hold):
    held = hold("prepare")
    hang(client, held, LARGE)
    for _ in range(2):
        client.post("/v1/predict", content=LARGE, headers=SOON)
    held.let_go()
    wait_until(client, lambda: client.app.state.service.queue.admitted == 0)
    assert not held.entered.acquire(timeout=0)


@pytest.mark.parametrize("size", SIZES)
def test_failure_that_nobody_waits_for_is_logged(client, hold, predictor, size, caplog):
    held = hold("infer")
    hang(client, held, SIZES[size])
    predictor.failure = RuntimeError("out of memory")
    held.let_go()
    wait_until(client, lambda: client.app.state.service.queue.admitted == 0)
    (record,) = [record for record in caplog.records if record.exc_info]
    assert "out of memory" in str(record.exc_info[1])
