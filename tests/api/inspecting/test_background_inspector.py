"""Photographs of data sets are inspected while inspections go first."""

import asyncio

import numpy as np
import pytest

from api.errors import RequestError
from api.inference.memory_budget import PhotographCost
from api.inspecting import background_inspector
from api.inspecting.encoded_photograph import EncodedPhotograph
from segdec.errors import ImageError
from segdec.images import encode_png


@pytest.fixture
def service(client):
    return client.app.state.service.inspection


def inspect(client, service, data):
    async def run():
        async with asyncio.timeout(30):
            model = service.find_model()
            return await service.background_inspector.inspect(model, EncodedPhotograph(data, "one"))

    return client.run(run)


def test_it_waits_while_photographs_are_inspected_but_not_forever(client, service, part, monkeypatch):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            service.queue.__exit__()

    monkeypatch.setattr(background_inspector.asyncio, "sleep", sleep)
    service.queue.__enter__()
    assert inspect(client, service, part).prediction.label == "scratch"
    assert waits == 3 * [background_inspector.IDLE_CHECK_S]
    service.queue.__enter__()
    assert inspect(client, service, part).prediction.label == "scratch"
    service.queue.__exit__()
    limit = background_inspector.MAX_WAIT_S / background_inspector.IDLE_CHECK_S
    assert len(waits) == 3 + limit


def test_a_photograph_is_measured_as_in_an_inspection_but_without_one(client, service, part, predictor):
    measured = inspect(client, service, part).measured
    predictor.failure = RuntimeError("the network fails")

    async def measure():
        model = service.find_model()
        return await service.background_inspector.measure(model, EncodedPhotograph(part, "one"))

    found = client.run(measure)
    assert set(found) >= {"brightness", "layout", "texture"}
    for name, vector in found.items():
        np.testing.assert_array_equal(vector, measured[name])
    assert service.memory.reserved_bytes == 0
    assert service.find_model().usage.count == 0


def test_it_waits_for_memory(client, service, part, monkeypatch):
    taken = PhotographCost(service.memory.available_bytes, 0.0)
    service.memory.reserve(taken)
    waits = []

    async def sleep(seconds):
        waits.append(seconds)
        service.memory.release(taken)

    monkeypatch.setattr(background_inspector.asyncio, "sleep", sleep)
    assert inspect(client, service, part).prediction.label == "scratch"
    assert waits == [background_inspector.MEMORY_RETRY_S]
    assert service.memory.reserved_bytes == 0


def test_what_cannot_be_inspected_keeps_no_memory(client, service, part, predictor):
    too_large = encode_png(np.zeros((200, 200, 1), np.uint8))  # --max-pixels is 20,000
    with pytest.raises(ImageError, match="pixels"):
        inspect(client, service, too_large)
    with pytest.raises(ImageError, match="not an image"):
        inspect(client, service, b"text")
    predictor.failure = RuntimeError("the network fails")
    with pytest.raises(RuntimeError, match="the network fails"):
        inspect(client, service, part)
    service.memory.idle_bytes = service.memory.limit_bytes
    with pytest.raises(RequestError) as refused:
        inspect(client, service, part)
    assert refused.value.status == 413
    assert service.memory.reserved_bytes == 0
    assert service.find_model().usage.count == 0
