"""Malformed requests, and some of the malformed images, over HTTP: each gets its problem, nothing is left."""

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
from tests.api.conftest import PNG, PROBLEM, ServiceClient, StubPredictor, part_image
from tests.api.malformed_forms import malformed_forms
from tests.api.malformed_json import malformed_json
from tests.api.malformed_requests import INFER, MalformedRequest, malformed_requests
from tests.malformed_images import BOMB, MalformedImage, malformed_images
from tests.peak_memory import peak_mb, reset_peak

ROOT = Path(__file__).parents[2]
MAX_PROBLEM_BYTES = 10_000
MAX_GROWTH_MB = 50

# In production Pillow's warnings are not errors.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")


@dataclass(frozen=True)
class Session:
    """The answers to the corpus, and the state of the service after it."""

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
            for number, image in enumerate(list(malformed_images())[::20])
            for answer in send_image(client, image.data, number)
        ]
        afterwards = client.post("/v1/predict", content=part, headers=PNG)
        service, bodies = app.state.service.inspection, app.state.service.bodies
        admitted = (service.queue.admitted, bodies.uploads.admitted, service.inference_thread.waiting)
    return Session(requests, images, afterwards, admitted)


def corpus(part: bytes) -> Iterator[MalformedRequest]:
    yield from malformed_requests(part)
    yield from malformed_forms(part)
    yield from malformed_json(part)


def make_app() -> FastAPI:
    """Accepts WebP, to test its decoder too."""
    return create_app(Settings(model=Path("unused"), accept_webp=True), StubPredictor())


def send(client: ServiceClient, case: MalformedRequest) -> httpx.Response:
    return client.request(case.method, case.path, content=case.body, headers=list(case.headers))


def send_image(client: ServiceClient, data: bytes, number: int) -> Iterator[httpx.Response]:
    """Sends an image raw and, by its number, in a form, in JSON or as a tensor."""
    yield client.post("/v1/predict", content=data, headers=PNG)
    encoded = base64.b64encode(data).decode()
    tensor = {"name": "image", "shape": [1], "datatype": "BYTES", "data": [encoded]}
    path, words = [
        ("/v1/predict", {"files": {"file": ("part.png", data)}}),
        ("/v1/predict", {"json": {"image": {"b64": encoded}}}),
        (INFER, {"json": {"inputs": [tensor]}}),
    ][number % 3]
    yield client.post(path, **words)


def code_of(answer: httpx.Response) -> str:
    """The code of a problem in its full form, anything else as text."""
    if answer.status_code < 400:
        return ""
    kind = answer.headers["Content-Type"]
    if kind != "application/problem+json" or len(answer.content) > MAX_PROBLEM_BYTES:
        return f"{kind}, {len(answer.content)} bytes"
    body = answer.json()
    keys = PROBLEM | ({"error"} if answer.url.path.startswith("/v2") else set())
    matches = body["status"] == answer.status_code and body["request_id"] == answer.headers["X-Request-ID"]
    return body["code"] if set(body) == keys and matches and body["detail"] else f"odd problem {body}"


def test_every_request_gets_its_answer(session):
    wrong = [
        (case.name, answer.status_code, code_of(answer))
        for case, answer in session.requests
        if answer.status_code != case.status or code_of(answer) not in case.code.split(" or ")
    ]
    assert not wrong


def test_no_malformed_image_passes(session):
    wrong = [
        (image.name, answer.request.url.path, answer.status_code)
        for image, answer in session.images
        if answer.status_code not in ({413, 422} if image.expectation == "refused" else {200, 413, 422})
    ]
    assert not wrong


def test_rejected_image_gets_the_same_code_in_every_kind_of_body(session):
    codes: dict[str, set[str]] = {}
    for image, answer in session.images:
        codes.setdefault(image.name, set()).add(code_of(answer))
    assert {name: found for name, found in codes.items() if len(found) > 1} == {}
    known = {"empty_image", "unsupported_type", "truncated_image", "corrupt_image"}
    known |= {"unsupported_depth", "unsupported_channels", "too_many_pixels", ""}
    assert {"truncated_image", "corrupt_image"} < set().union(*codes.values()) <= known


def test_service_is_unchanged_after_malformed_requests(session):
    assert session.afterwards.json()["decision"]["label"] == "scratch"
    assert session.admitted == (0, 0, 0)


# === Memory ===


@pytest.mark.slow
def test_no_input_needs_50_mb():
    """In a process of its own, whose highest memory is read after each request."""
    code = "from tests.api.test_hostile import print_growth; print_growth()"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    growth: dict[str, float] = json.loads(said.stdout)
    assert {name: mb for name, mb in growth.items() if mb >= MAX_GROWTH_MB} == {}
    assert sum(name.startswith(BOMB) for name in growth) >= 30


def print_growth() -> None:
    """Prints by how many MB each bad input raised the memory, and all of them together."""
    part = encode_png(part_image())
    growth = {}
    with ServiceClient(make_app()) as client:
        client.post("/v1/predict", content=part, headers=PNG)
        for case in corpus(part):
            if len(case.body) <= 8 * 2**20:  # a large body takes several times its size
                growth[case.name] = growth_while(partial(send, client, case))
        for image in malformed_images():
            sending = partial(client.post, "/v1/predict", content=image.data, headers=PNG)
            growth[image.name] = growth_while(sending)
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
