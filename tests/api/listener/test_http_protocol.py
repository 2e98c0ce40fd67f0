"""What only a real server and a socket can show: bodies and heads that lie, stall or break off."""

import asyncio
import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI

from api.app import create_app
from api.listener.http_protocol import BoundedHttpProtocol
from api.settings import Settings
from tests.api.conftest import PROBLEM, StubPredictor
from tests.api.live_server import served

POST = b"POST /v1/predict HTTP/1.1\r\nHost: test\r\nContent-Type: image/png\r\n"
LIVE = b"GET /livez HTTP/1.1\r\nHost: test\r\n\r\n"


class WireResponse(NamedTuple):
    """What came back for one request."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.content)

    def problem(self) -> tuple[int, object]:
        assert self.headers["content-type"] == "application/problem+json"
        assert set(self.body) == PROBLEM
        return self.status, self.body["code"]


class Wire:
    """A connection on which bytes are sent as they are."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=30)
        self._file = self._socket.makefile("rb")

    def send(self, *data: bytes) -> None:
        self._socket.sendall(b"".join(data))

    def head(self) -> tuple[int, dict[str, str]]:
        status = int(self._file.readline().split()[1])
        headers = {}
        while line := self._file.readline().strip().decode():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        return status, headers

    def response(self) -> WireResponse:
        status, headers = self.head()
        return WireResponse(status, headers, self._file.read(int(headers["content-length"])))

    def ended(self) -> bool:
        """Whether the server closes without a further byte."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:  # some of what was sent was not read
            return True

    def end(self) -> None:
        """Sends no more, but still reads."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


Connect = Callable[..., Wire]


@pytest.fixture
def connect(make_app: Callable[..., FastAPI]) -> Iterator[Connect]:
    """Starts a server at the first call, with the settings given there; connects to it at every one."""
    addresses = []
    with ExitStack() as stack:

        def connect_to(**settings: object) -> Wire:
            if not addresses:
                addresses.append(stack.enter_context(served(make_app(**settings))))
            return stack.enter_context(closing(Wire(addresses[0])))

        yield connect_to


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """Of a server with no settings of its own."""
    with served(create_app(Settings.model_validate({"model": Path("unused")}), StubPredictor())) as address:
        yield address


@pytest.fixture
def wire(address: tuple[str, int]) -> Iterator[Wire]:
    """A connection to that server."""
    with closing(Wire(address)) as wire:
        yield wire


class RecordedTransport:
    """A connection that notes what is written at once."""

    def __init__(self, transport: asyncio.Transport, written: list[bytes]) -> None:
        self._transport, self._written = transport, written

    def write(self, data: bytes) -> None:
        self._written.append(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def test_head_and_body_are_written_at_once(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service killed between them would leave an answer that a proxy cannot get from another replica."""
    written: list[bytes] = []
    made = BoundedHttpProtocol.connection_made
    record = lambda protocol, transport: made(protocol, RecordedTransport(transport, written))  # noqa: E731
    monkeypatch.setattr(BoundedHttpProtocol, "connection_made", record)
    wire = connect()
    for _ in range(2):
        wire.send(LIVE)
        content = wire.response().content
        assert content and written.pop().endswith(content) and not written
    wire.send(LIVE.replace(b"GET", b"HEAD"), LIVE)
    assert wire.head()[0] == 200
    assert wire.response().status == 200


def length(count: int) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % count


# === Bodies ===


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: -1",
        b"Content-Length: 5, 6",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",  # two proxies could see two requests in it
    ],
)
def test_invalid_lengths_are_rejected(wire, headers):
    wire.send(POST, headers, b"\r\n\r\n0\r\n\r\n", LIVE)
    assert wire.response().problem() == (400, "bad_request")
    assert wire.ended()


def test_slow_body_and_the_rest_of_a_rejected_one_time_out(connect):
    slow = connect(upload_timeout_s=0.2, max_body_bytes=100)
    slow.send(POST, length(100), b"x")
    assert slow.response().problem() == (408, "upload_timeout")
    assert slow.ended()
    rejected = connect()
    rejected.send(POST, length(1_000_000))
    assert rejected.response().problem() == (413, "body_too_large")
    rejected.send(b"x")
    assert rejected.ended()


def test_deadline_covers_the_body(wire, part):
    wire.send(POST, b"X-Deadline-Ms: 50\r\n", length(len(part)), part[:20])
    assert wire.response().problem() == (504, "deadline_passed")
    wire.send(part[20:], LIVE)  # the rest is no request
    assert wire.response().status == 200


def test_full_service_answers_before_the_body_comes(connect, predictor, part):
    busy, late = connect(queue_size=0), connect()
    send_and_block(predictor, part, busy)
    late.send(POST, b"Expect: 100-continue\r\n", length(len(part)))
    response = late.response()
    predictor.gate.set()
    assert response.problem() == (503, "queue_full")
    assert response.headers["retry-after"] == "1"
    assert busy.response().status == 200


@pytest.mark.parametrize("declared", [True, False])
def test_connection_can_be_used_after_a_413(connect, part, declared):
    wire = connect(max_body_bytes=1000)
    large = bytes(5000)
    if declared:
        wire.send(POST, length(len(large)), large)
    else:
        wire.send(POST, b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(large), large, b"\r\n0\r\n\r\n")
    assert wire.response().problem() == (413, "body_too_large")
    wire.send(POST, length(len(part)), part)
    assert wire.response().status == 200


LARGE = bytes(24_000_000)
"""More than the kernel buffers: a client that sends all of it first depends on the server reading it."""


def post_with_http_client(url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=30)) as connection:
        connection.request("POST", parts.path, LARGE, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def post_with_urllib(url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    with pytest.raises(urllib.error.HTTPError) as failure:
        urllib.request.urlopen(urllib.request.Request(url, LARGE, headers), timeout=30)
    with failure.value as answer:
        return answer.code, answer.read()


def post_with_httpx(url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    answer = httpx.post(url, content=LARGE, headers=headers, trust_env=False, timeout=30)
    return answer.status_code, answer.content


@pytest.mark.parametrize("post", [post_with_http_client, post_with_urllib, post_with_httpx])
@pytest.mark.parametrize(
    ("path", "expected"), [("/v1/predict", (413, "body_too_large")), ("/nothing", (404, "not_found"))]
)
def test_clients_that_send_everything_first_get_the_reason(make_app, post, path, expected):
    headers = {"Connection": "close", "Content-Type": "image/png"}
    with served(make_app(max_body_bytes=1000)) as (host, port):
        status, content = post(f"http://{host}:{port}{path}", headers)
    assert (status, json.loads(content)["code"]) == expected


def test_the_rest_of_a_body_is_read_up_to_a_limit(connect, monkeypatch):
    monkeypatch.setattr("api.listener.http_protocol.MAX_DISCARDED_BYTES", 1_000_000)
    wire = connect(max_body_bytes=1000)
    wire.send(POST, b"Connection: close\r\n", length(len(LARGE)))
    assert wire.response().problem() == (413, "body_too_large")
    assert not sent(wire, LARGE)


def test_the_rest_of_a_body_is_read_for_a_limited_time(make_app, skipping_loop):
    with served(make_app()) as address, closing(Wire(address)) as wire:
        wire.send(POST, b"Connection: close\r\n", length(10**12))
        assert wire.response().problem() == (413, "body_too_large")
        assert sent(wire, LARGE)
        skipping_loop.skip(31)
        assert not sent(wire, LARGE)


def test_an_expected_continue_is_answered_by_the_reason_alone(wire):
    wire.send(POST, b"Connection: close\r\nExpect: 100-continue\r\n", length(10**12))
    assert wire.response().problem() == (413, "body_too_large")
    assert wire.ended()


@pytest.mark.parametrize("finished_sending", [False, True])
def test_photograph_of_a_disconnected_client_is_skipped(connect, predictor, part, finished_sending):
    first, second, third = connect(), connect(), connect()
    send_and_block(predictor, part, first)
    second.send(POST, length(len(part)), part)
    if finished_sending:
        second.end()
        for _ in range(100):
            assert ask(third, "/livez").status == 200
    second.close()
    gone = b'segdec_rejections_total{reason="client_gone"} 1.0'
    assert any(gone in ask(third, "/metrics").content for _ in range(10_000))
    predictor.shapes.clear()
    predictor.gate.set()
    assert first.response().status == 200
    third.send(POST, length(len(part)), part)
    assert third.response().body["batch_size"] == 1
    assert len(predictor.shapes) == 2


def ask(wire: Wire, path: str) -> WireResponse:
    wire.send(b"GET %s HTTP/1.1\r\nHost: test\r\n\r\n" % path.encode())
    return wire.response()


def send_and_block(predictor, part, wire) -> None:
    """Sends a photograph and blocks the network while it has it."""
    predictor.block()
    wire.send(POST, length(len(part)), part)
    assert predictor.entered.acquire(timeout=30)


# === Clients that send no more ===


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_client_that_only_closed_its_sending_side_is_answered(wire, part, version):
    wire.send(POST.replace(b"1.1", version), length(len(part)), part)
    wire.end()
    response = wire.response()
    assert (response.status, response.body["decision"]["label"]) == (200, "scratch")
    assert wire.ended()


def test_client_that_stops_sending_during_inference_is_answered(connect, predictor, part):
    wire, other = connect(), connect()
    send_and_block(predictor, part, wire)
    wire.end()
    for _ in range(100):  # the end has been seen meanwhile, and looked at
        assert ask(other, "/livez").status == 200
    predictor.gate.set()
    assert wire.response().status == 200
    assert wire.ended()


# === Heads ===


@pytest.mark.parametrize(
    "target", [b"/v1/pr\xc3\xa9dict", b"http://[::1/x", b"no slash", b"/../../etc/passwd"]
)
def test_invalid_request_targets_are_rejected(wire, target):
    wire.send(b"GET ", target, b" HTTP/1.1\r\nHost: test\r\n\r\n")
    assert wire.response().problem() in [(400, "bad_request"), (404, "not_found")]


def sent(wire: Wire, *data: bytes) -> bool:
    """Sends bytes; returns False if the server has already closed the connection."""
    try:
        wire.send(*data)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


@pytest.mark.parametrize("filler", [b"x", b"x: y\r\n"])
@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nHost: test\r\nCookie: "])
def test_endless_head_is_refused(wire, start, filler):
    if not sent(wire, start, filler * (2**20 // len(filler))):
        return
    assert wire.response().status in (400, 431)
    assert wire.ended()


def test_endless_trailers_are_refused(wire, part):
    start = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\nX: " % (len(part), part)
    if not sent(wire, POST, start, b"x" * 2**20):
        return
    assert wire.response().problem() == (431, "request_header_fields_too_large")
    assert wire.ended()


def test_trailers_are_ignored(wire, part):
    trailer = b"\r\n0\r\nX-Request-ID: trailer\r\n\r\n"
    wire.send(POST, b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(part), part, trailer)
    response = wire.response()
    assert response.body["decision"]["label"] == "scratch"
    assert response.headers["x-request-id"] != "trailer"


def test_requests_after_one_another_are_answered_in_order(wire, part):
    wire.send(LIVE, POST, length(len(part)), part, LIVE)
    responses = [wire.response() for _ in range(3)]
    assert [response.status for response in responses] == [200, 200, 200]
    assert responses[1].body["decision"]["label"] == "scratch"


# === Log and metrics of rejections below the app ===


def refusals(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    names = ("request_id", "client", "method", "path", "status", "problem")
    records = [record for record in caplog.records if record.name == "api.listener.http_protocol"]
    return [{name: vars(record)[name] for name in names if name in vars(record)} for record in records]


def test_invalid_http_is_logged_counted_and_has_an_id(connect, caplog):
    wire = connect()
    wire.send(b"\x16\x03\x01\x02\x00 this is TLS, or nothing\r\n\r\n")
    response = wire.response()
    request_id = response.body["request_id"]
    assert response.headers["x-request-id"] == request_id
    assert refusals(caplog) == [
        {"request_id": request_id, "client": "127.0.0.1", "status": 400, "problem": "bad_request"}
    ]
    lines = ask(connect(), "/metrics").content.decode().splitlines()
    assert 'segdec_problems_total{code="bad_request",key="",status="400"} 1.0' in lines
    assert 'segdec_requests_total{code="400",method="other",route="unmatched"} 1.0' in lines


def test_slow_head_is_rejected_and_logged_and_an_idle_connection_is_closed(connect, caplog):
    idle, slow = connect(upload_timeout_s=0.2), connect()
    slow.send(b"POST /v1/predict?mask=none HTTP/1.1\r\nHost: ")
    assert slow.response().problem() == (408, "request_timeout")
    assert slow.ended()
    assert idle.ended()
    (line,) = refusals(caplog)
    assert (line["path"], line["status"], line["problem"]) == ("/v1/predict", 408, "request_timeout")
