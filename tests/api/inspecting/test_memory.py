"""Photographs and bodies that do not fit into memory, in the whole service."""

import asyncio
import base64
import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
from starlette.requests import Request

from api.app import create_app
from api.errors import RequestError
from api.http.admission import BODY_COPIES, JSON_BODY_COPIES, ByteLimit
from api.http.open_uploads import OpenUpload, UploadLimit
from api.inference.memory_budget import BYTES_PER_PIXEL, SPARE_SHARE, MemoryFullError
from api.inference.network_cost import NetworkCost
from api.inspecting.request_group import RequestGroup
from api.inspecting.service import InspectionService
from api.inspecting.uploads import read_upload
from api.settings import Settings
from segdec.images import encode_png
from segdec.process_memory import resident_bytes
from tests.api.conftest import PNG, ServiceClient, part_image

MEBI = 2**20
PART_PIXELS = 24 * 40


def set_memory(service: InspectionService, pixels: int, cost: NetworkCost) -> None:
    """Leaves memory for `pixels` pixels and nothing more, with a network of this `cost`."""
    memory = service.memory
    needed = pixels * BYTES_PER_PIXEL + cost.bytes_for(pixels)
    memory.limit_bytes, memory.body_bytes, memory.idle_bytes = int(np.ceil(needed / (1 - SPARE_SHARE))), 0, 0
    [model] = service.models.all()
    service.models.replace("unnamed", {"0": replace(model, cost=cost)})


# === Photographs ===


def test_photograph_beyond_the_memory_is_refused_before_it_is_decoded(client, predictor, part):
    set_memory(client.app.state.service.inspection, PART_PIXELS, NetworkCost(bytes_per_pixel=300))
    predictor.refusal = AssertionError("it was decoded")
    for url, body in (
        ("/v1/predict", {"content": encode_png(part_image(32, 40)), "headers": PNG}),
        ("/v2/models/unnamed/infer", {"json": pixels_request(32, 40)}),
    ):
        problem = client.post(url, **body).json()
        assert (problem["status"], problem["code"]) == (413, "too_many_pixels_for_memory"), url
        assert "40 × 32 = 1,280 pixels" in problem["detail"]
        assert "Expected at most 960 pixels" in problem["detail"]
    predictor.refusal = None
    assert client.post("/v1/predict", content=part, headers=PNG).status_code == 200
    [model] = client.get("/v1/models/unnamed").json()["models"]
    assert (model["max_pixels"], model["limited_by"]) == (PART_PIXELS, "memory")
    assert client.app.state.service.inspection.memory.reserved_bytes == 0


def pixels_request(height: int, width: int) -> dict:
    shape = [1, height, width, 1]
    tensor = {"name": "pixels", "datatype": "UINT8", "shape": shape, "data": [0] * (height * width)}
    return {"inputs": [tensor]}


async def send_in_turn(app, body: bytes, count: int, gate: Callable[[], None]) -> list[httpx.Response]:
    """Sends the body again when the last one is at the network, and opens the `gate` at the end."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        memory, sent = app.state.service.inspection.memory, []
        for _ in range(count):
            before = memory.reserved_bytes
            sent.append(asyncio.create_task(client.post("/v1/predict", content=body, headers=PNG)))
            while memory.reserved_bytes == before and not sent[-1].done():
                await asyncio.sleep(0)
        gate()
        return [await task for task in sent]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("full", "code", "detail"),
    [
        ("photographs", "queue_full", "2 photographs are waiting or running"),
        ("bodies", "uploads_full", "The request bodies in progress take 40,000 bytes"),
    ],
)
async def test_what_does_not_fit_at_the_same_time_is_refused(make_app, predictor, part, full, code, detail):
    """Bodies count until their answer."""
    app = make_app(max_body_bytes=10_000)
    padded = part + bytes(10_000 - len(part))  # a PNG may have more bytes after its end
    async with app.router.lifespan_context(app):
        service = app.state.service.inspection
        await app.state.service.start()
        if full == "photographs":
            set_memory(service, 2 * PART_PIXELS, NetworkCost())
        else:
            service.bodies.memory.limit = 2 * BODY_COPIES * len(padded)
        predictor.gate.clear()
        try:
            *accepted, refused = await send_in_turn(app, padded, 3, predictor.gate.set)
        finally:
            predictor.gate.set()
        assert service.memory.reserved_bytes == service.queue.admitted == service.bodies.memory.reserved == 0
    assert [answer.status_code for answer in accepted] == [200, 200]
    assert (refused.status_code, refused.json()["code"]) == (503, code)
    assert detail in refused.json()["detail"]
    assert refused.headers["Retry-After"] == "1"


@pytest.mark.parametrize("form", ["batch", "v2"])
def test_photographs_of_one_request_wait_for_each_other(client, predictor, part, form):
    set_memory(client.app.state.service.inspection, PART_PIXELS, NetworkCost(bytes_per_pixel=10))
    if form == "batch":
        files = [("file", (f"{number}.png", part)) for number in range(6)]
        items = client.post("/v1/predict/batch", files=files).json()["items"]
        assert [item["problem"] for item in items] == [None] * 6
    else:
        encoded = base64.b64encode(part).decode()
        tensor = {"name": "image", "datatype": "BYTES", "shape": [6], "data": [encoded] * 6}
        answer = client.post("/v2/models/unnamed/infer", json={"inputs": [tensor]})
        assert answer.status_code == 200, answer.text
    assert set(predictor.shapes[4:]) == {(1, 24, 40, 1)}
    assert client.app.state.service.inspection.memory.reserved_bytes == 0


@pytest.mark.anyio
async def test_photograph_is_retried_if_another_one_ended_meanwhile():
    group, first_ended, attempts = RequestGroup(2), asyncio.Event(), []

    async def first() -> str:
        return "first"

    async def second() -> str:
        attempts.append(first_ended.is_set())
        if len(attempts) == 1:
            await first_ended.wait()
            raise MemoryFullError(503, "queue_full", "full")  # before the first one released its memory
        return "second"

    waiting = asyncio.create_task(group.run_when_memory_is_free(second))
    await asyncio.sleep(0)
    assert await group.run_when_memory_is_free(first) == "first"
    first_ended.set()
    assert await waiting == "second"


# === Bodies ===


def body_request(body: bytes, kind: str, *, declared: bool = True) -> Request:
    """A request whose body arrives in pieces of 64 KiB."""
    pieces = [body[start : start + 65536] for start in range(0, len(body), 65536)]

    async def receive() -> dict:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    headers = [(b"content-type", kind.encode())]
    if declared:
        headers.append((b"content-length", str(len(body)).encode()))
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


@contextmanager
def open_upload(limit: ByteLimit) -> Iterator[OpenUpload]:
    with limit.reserve() as memory, OpenUpload(UploadLimit(1, 1), "client", memory) as upload:
        yield upload


NOISE = np.random.default_rng(0).bytes(4 * MEBI)
FORM = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + NOISE + b"\r\n--b--\r\n"
JSON_BODY = json.dumps({"image": {"b64": base64.b64encode(NOISE).decode()}}).encode()


@pytest.mark.parametrize(
    ("body", "kind", "copies"),
    [
        (NOISE, "image/png", BODY_COPIES),
        (FORM, "multipart/form-data; boundary=b", BODY_COPIES),
        (JSON_BODY, "application/json", JSON_BODY_COPIES),
    ],
    ids=["raw", "form", "json"],
)
def test_memory_of_a_body_is_what_is_reserved_for_it(body, kind, copies):
    limit = ByteLimit(10 * len(body), 1)

    async def read() -> int:
        with open_upload(limit) as upload:
            request = body_request(body, kind)
            photograph = await read_upload(request, len(body), upload)
            assert photograph.data == NOISE
            assert limit.reserved == copies * len(body)
        return limit.reserved

    asyncio.run(read())  # its imports do not count
    tracemalloc.start()
    try:
        before = len(body)  # the pieces of the test itself
        assert asyncio.run(read()) == 0
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= copies * len(body) + MEBI, f"{peak / len(body):.2f} times the body"


@pytest.mark.anyio
@pytest.mark.parametrize("declared", [True, False])
async def test_body_is_refused_before_or_while_it_arrives(declared):
    limit = ByteLimit(BODY_COPIES * MEBI, 1)
    with pytest.raises(RequestError) as refused, open_upload(limit) as upload:
        try:
            await read_upload(body_request(NOISE, "image/png", declared=declared), len(NOISE), upload)
        finally:
            assert limit.reserved == (0 if declared else BODY_COPIES * MEBI)
    assert refused.value.code == "uploads_full"
    assert limit.reserved == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"memory_bytes": 8_000_000_000}, 10**9),
        ({"memory_bytes": 8_000, "max_body_bytes": 5000}, 5000 * JSON_BODY_COPIES),
        ({"max_upload_bytes": 123_456, "max_body_bytes": 10}, 123_456),
    ],
)
async def test_bodies_get_an_eighth_of_the_memory_or_enough_for_one(make_app, settings, limit):
    app = make_app(**settings)
    async with app.router.lifespan_context(app):
        assert app.state.service.bodies.memory.limit == limit


# === A real model ===


def test_largest_photograph_of_a_real_model_is_measured(tiny_artifact):
    """With the memory that this process uses, and 300 MB for photographs."""
    limit = int((resident_bytes() + 300 * MEBI) / (1 - SPARE_SHARE))
    settings = Settings(
        model=tiny_artifact, memory_bytes=limit, max_body_bytes=MEBI, max_upload_bytes=4 * MEBI, page=False
    )
    with ServiceClient(create_app(settings)) as client:
        [model] = client.get("/v1/models").json()["models"]
        assert model["limited_by"] == "memory"
        assert 2**16 < model["max_pixels"] < 2**24
        assert client.app.state.service.inspection.memory.idle_bytes > 0
        fitting = int(model["max_pixels"] ** 0.5) // 8 * 8 - 8
        for side, status in ((fitting, 200), (fitting + 32, 413)):
            image = encode_png(np.zeros((side, side), np.uint8))
            answer = client.post("/v1/predict?mask=none", content=image, headers=PNG)
            assert answer.status_code == status, answer.text


def test_model_that_does_not_fit_is_not_served(tiny_artifact):
    settings = Settings(model=tiny_artifact, memory_bytes=64 * MEBI, max_body_bytes=MEBI)
    with pytest.raises(Exception, match="is too small for this model"), ServiceClient(create_app(settings)):
        pass


def test_failure_to_release_memory_is_logged(serve, make_app, predictor, caplog):
    predictor.release_memory = Mock(side_effect=RuntimeError("broken"))
    with serve(make_app()) as client:
        service = client.app.state.service.inspection

        async def release() -> None:
            service.release_memory()
            await service.inference_thread.call(lambda: None)

        client.run(release)
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.message == "Free memory was not released"
    assert "broken" in str(record.exc_info[1])
