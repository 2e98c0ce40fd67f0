"""A request that ends without an answer is also an uninspected photograph."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from api.record.uninspected_middleware import UninspectedMiddleware


def handle(app, path="/v1/inspect", method="POST", query=b"station=a&part_id=7", *, is_started=True):
    """The photographs that are reported for one request."""
    reported = []
    service = SimpleNamespace(recording=SimpleNamespace(log_uninspected=reported.append))
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "state": {"key": "line-1"},
        "app": SimpleNamespace(state=SimpleNamespace(service=service if is_started else None)),
    }

    async def send(_):
        pass

    with suppress(RuntimeError, OSError, asyncio.CancelledError):
        asyncio.run(UninspectedMiddleware(app)(scope, None, send))
    return reported


def answering(status, error=None):
    async def app(_, __, send):
        if status:
            await send({"type": "http.response.start", "status": status})
        if error:
            raise error

    return app


@pytest.mark.parametrize(
    ("error", "expected"),
    [(RuntimeError("a bug"), (500, "internal_error")), (asyncio.CancelledError(), (503, "draining"))],
)
def test_request_without_an_answer_is_reported(error, expected):
    (found,) = handle(answering(0, error))
    assert (found.status, found.code) == expected
    assert (found.station, found.part_id, found.client, found.count) == ("a", "7", "line-1", 1)


@pytest.mark.parametrize(
    ("status", "path", "method", "count"),
    [
        (404, "/v1/models/castings/inspect", "POST", 1),
        (401, "/v1/inspect", "POST", 0),
        (404, "/v1/predict", "POST", 0),
        (404, "/v1/models/a/versions/1/inspect", "POST", 0),
    ],
)
def test_only_inspections_with_a_valid_key_count(status, path, method, count):
    assert len(handle(answering(status), path, method)) == count


def test_answer_to_a_disconnected_client_and_requests_before_the_start_are_not_reported():
    assert handle(answering(200, OSError("disconnected"))) == []
    assert handle(answering(503), is_started=False) == []


@pytest.mark.parametrize(
    ("sent", "stored"), [("ライン\u30003", "ライン\u30003"), ("\U0001f600", "\U0001f600"), ("a\0\n", "a��")]
)
def test_station_is_that_of_the_inspection(sent, stored):
    (found,) = handle(answering(503), query=f"station={quote(sent)}".encode())
    assert found.station == stored
