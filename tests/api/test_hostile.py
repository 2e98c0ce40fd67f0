"""All the bad input there is, over HTTP: each gets the answer that it deserves, and nothing stays behind."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from api.app import create_app
from api.settings import Settings
from segdec.images import encode_png
from tests.api.conftest import ServiceClient, StubPredictor, part_image
from tests.api.malformed_forms import malformed_forms
from tests.api.malformed_json import malformed_json
from tests.api.malformed_requests import INFER, MalformedRequest, malformed_requests
from tests.malformed_images import BOMB, MalformedImage, malformed_images
from tests.peak_memory import peak_mb, reset_peak

ROOT = Path(__file__).parents[2]
PROBLEM = {"type", "title", "status", "detail", "code", "request_id"}
LONGEST_PROBLEM = 10_000
MOST_GROWTH_MB = 50
SAMPLE_STEP = 20
"""The decoder tests use the whole corpus of images; some 50 of them are sent over HTTP."""
PNG = {"Content-Type": "image/png"}

# Production prints Pillow's warnings and goes on, so errors of them would test another path.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")


@dataclass(frozen=True)
class Session:
    """What the service said to the whole corpus, and how it was afterwards."""

    requests: list[tuple[MalformedRequest, httpx.Response]]
    images: list[tuple[MalformedImage, httpx.Response]]
    afterwards: httpx.Response
    admitted: tuple[int, int, int]


@pytest.fixture(scope="module")
def session(part: bytes) -> Session:
    app = make_app()
    with ServiceClient(app) as client:
        requests = [(case, send(client, case)) for case in corpus(part)]
        images = [
            (image, answer)
            for number, image in enumerate(list(malformed_images())[::SAMPLE_STEP])
            for answer in send_image(client, image.data, number)
        ]
        afterwards = client.post("/v1/predict", content=part, headers=PNG)
        service = app.state.service
        admitted = (service.queue.admitted, service.uploads.admitted, service.inference_thread.waiting)
    return Session(requests, images, afterwards, admitted)


def corpus(part: bytes) -> Iterator[MalformedRequest]:
    yield from malformed_requests(part)
    yield from malformed_forms(part)
    yield from malformed_json(part)


def make_app() -> FastAPI:
    """Accepts WebP: its decoder has to stand all of it too."""
    return create_app(
        Settings.model_validate({"model": Path("unused"), "accept_webp": True}), StubPredictor()
    )


def send(client: ServiceClient, case: MalformedRequest) -> httpx.Response:
    return client.request(case.method, case.path, content=case.body, headers=list(case.headers))


def send_image(client: ServiceClient, data: bytes, number: int) -> Iterator[httpx.Response]:
    """Sends a picture raw and, by its number, in one of the other ways."""
    yield client.post("/v1/predict", content=data, headers=PNG)
    encoded = base64.b64encode(data).decode() if number % 3 else ""
    if number % 3 == 0:
        yield client.post("/v1/predict", files={"file": ("part.png", data)})
    elif number % 3 == 1:
        yield client.post("/v1/predict", json={"image": {"b64": encoded}})
    else:
        tensor = {"name": "image", "shape": [1], "datatype": "BYTES", "data": [encoded]}
        yield client.post(INFER, json={"inputs": [tensor]})


def code_of(answer: httpx.Response) -> str:
    """The code of a problem in its full form, anything else in words."""
    if answer.status_code < 400:
        return ""
    if answer.headers["Content-Type"] != "application/problem+json" or len(answer.content) > LONGEST_PROBLEM:
        return f"{answer.headers['Content-Type']}, {len(answer.content)} bytes"
    body = answer.json()
    keys = PROBLEM | ({"error"} if answer.url.path.startswith("/v2") else set())
    told = body["status"] == answer.status_code and body["request_id"] == answer.headers["X-Request-ID"]
    return body["code"] if set(body) == keys and told and body["detail"] else f"odd problem {body}"


def test_corpus_is_large_and_its_names_are_unique(session):
    names = [case.name for case, _ in session.requests] + [image.name for image in malformed_images()]
    assert len(set(names)) == len(names) >= 700


def test_every_request_gets_its_answer(session):
    wrong = [
        (case.name, answer.status_code, code_of(answer))
        for case, answer in session.requests
        if answer.status_code != case.status or code_of(answer) not in case.code.split(" or ")
    ]
    assert not wrong


def test_answer_to_damage_that_no_checksum_tells_says_so(session):
    found = [
        answer.json()["image"]["integrity"]
        for image, answer in session.images
        if image.expectation == "unchecked"
        and answer.status_code == 200
        and "/v1/" in answer.request.url.path
    ]
    assert len(found) > 5
    assert set(found) == {"unchecked"}


def test_no_malformed_image_passes(session):
    wrong = [
        (image.name, answer.request.url.path, answer.status_code)
        for image, answer in session.images
        if answer.status_code not in ({413, 422} if image.expectation == "refused" else {200, 413, 422})
    ]
    assert not wrong


def test_every_refused_image_gets_a_problem_with_the_same_code_whichever_way_it_came(session):
    codes: dict[str, set[str]] = {}
    for image, answer in session.images:
        codes.setdefault(image.name, set()).add(code_of(answer))
    assert {name: found for name, found in codes.items() if len(found) > 1} == {}
    known = {"empty_image", "unsupported_type", "truncated_image", "corrupt_image"}
    known |= {"unsupported_depth", "unsupported_channels", "too_many_pixels", ""}
    assert set().union(*codes.values()) <= known


def test_afterwards_the_service_is_as_before(session):
    assert session.afterwards.json()["decision"]["label"] == "scratch"
    assert session.admitted == (0, 0, 0)


# === Memory ===


@pytest.mark.slow
def test_no_input_costs_50_mb():
    """In a process of its own, whose highest memory is read after each request."""
    code = "from tests.api.test_hostile import print_growth; print_growth()"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    growth: dict[str, float] = json.loads(said.stdout)
    assert {name: mb for name, mb in growth.items() if mb >= MOST_GROWTH_MB} == {}
    assert sum(name.startswith(BOMB) for name in growth) >= 30


def print_growth() -> None:
    """For each bad input, by how many MB it raised the memory while it was answered; and all of them."""
    part = encode_png(part_image())
    growth = {}
    with ServiceClient(make_app()) as client:
        client.post("/v1/predict", content=part, headers=PNG)
        for case in corpus(part):
            if len(case.body) <= 8 * 2**20:  # a large body costs its own size, several times
                growth[case.name] = growth_while(partial(send, client, case))
        for image in malformed_images():
            growth[image.name] = growth_while(
                partial(client.post, "/v1/predict", content=image.data, headers=PNG)
            )
        again = [case for case in corpus(part) if case.name in growth]
        before = resident_mb()
        for case in again:
            send(client, case)
        growth["all of them once more"] = resident_mb() - before
    print(json.dumps(growth))


def growth_while(function: Callable[[], object]) -> float:
    before = resident_mb()
    function()
    return peak_mb() - before


def resident_mb() -> float:
    reset_peak()
    return peak_mb()
