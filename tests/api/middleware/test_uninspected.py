"""What ends without an answer is not inspected either."""

import asyncio
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from api.middleware.uninspected import UninspectedMiddleware


class Noted:
    """A service that only notes misses."""

    def __init__(self):
        self.misses = []
        self.recording = SimpleNamespace(log_uninspected=self.misses.append)


def handle(app, service, path="/v1/inspect", method="POST", query=b"station=a&part_id=7"):
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "state": {"key": "line-1"},
    }
    scope["app"] = SimpleNamespace(state=SimpleNamespace(service=service))

    async def send(_):
        pass

    asyncio.run(UninspectedMiddleware(app)(scope, None, send))


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
def test_what_breaks_off_is_missed(error, expected):
    service = Noted()
    with pytest.raises(type(error)):
        handle(answering(0, error), service)
    miss = service.misses[0]
    assert (miss.status, miss.code) == expected
    assert (miss.station, miss.part_id, miss.client, miss.count) == ("a", "7", "line-1", 1)


def test_an_answer_whose_client_left_is_none():
    service = Noted()
    with pytest.raises(OSError, match="gone"):
        handle(answering(200, OSError("gone")), service)
    assert service.misses == []


@pytest.mark.parametrize(
    ("path", "method", "count"),
    [
        ("/v1/models/castings/inspect", "POST", 1),
        ("/v1/inspect", "OPTIONS", 0),
        ("/v1/predict", "POST", 0),
        ("/v1/models/a/versions/1/inspect", "POST", 0),
    ],
)
def test_only_photographs_that_came_to_be_inspected_count(path, method, count):
    service = Noted()
    handle(answering(404), service, path, method)
    assert len(service.misses) == count


def test_before_the_start_nothing_is_noted():
    handle(answering(503), None)


def test_names_that_do_not_print_are_noted_as_they_can_be():
    service = Noted()
    handle(answering(400), service, query=b"station=%00a%0Ab&part_id=%F0%9F%98%80")
    assert (service.misses[0].station, service.misses[0].part_id) == ("\ufffda\ufffdb", "\U0001f600")


@pytest.mark.parametrize(
    ("asked", "noted"),
    [
        ("line 3", "line 3"),
        ("ライン\u30003", "ライン\u30003"),
        ("می\u200cشود", "می\u200cشود"),
        ("a\0\n", "a��"),
    ],
)
def test_a_miss_is_noted_at_the_station_where_its_inspection_would_be(asked, noted):
    service = Noted()
    handle(answering(503), service, query=f"station={quote(asked)}".encode())
    assert service.misses[0].station == noted
