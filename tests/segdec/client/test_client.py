import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import numpy as np
import pytest

from segdec.client import AsyncClient, Client
from segdec.client.retries import RetryPolicy, retry_after_s
from segdec.errors import ConfigError, ImageError, MissingExtraError, ServiceError
from segdec.images import decode_image, encode_png
from segdec.schemas import Answer, Problem
from tests.segdec.service_answer import SERVICE_ANSWER

URL = "http://parts:8000/line4"
ANSWER = SERVICE_ANSWER | {"field_of_a_newer_service": 1}
DETAIL = "The request body is damaged."
PROBLEM = {"title": "Bad", "status": 422, "request_id": "9", "code": "corrupt_image", "detail": DETAIL}
INSPECTED = ANSWER | {"record_id": 12, "repeated": True}
MODEL = {"name": "parts", "version": "2", "sha256": None, "aliases": [], "manifest": {}}
TIMES = {"load": 0, "self_test": 0, "warm": 0, "drain": 0}
RELOADED = {"models": [MODEL], "loaded": ["2"], "kept": [], "removed": ["1"], "timing_ms": TIMES}

Reply = httpx.Response | Exception


def refused(status: int, **headers: str) -> httpx.Response:
    request = httpx.Request("POST", URL)
    return httpx.Response(status, json=PROBLEM | {"status": status}, headers=headers, request=request)


class Line:
    """Returns `replies` in turn, then answers; records requests and waits."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0) if self.replies else httpx.Response(200, json=ANSWER)
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)

    async def sleep(self, wait_s: float) -> None:
        self.waits.append(wait_s)


Ask = Callable[..., Any]


def ask_waiting(line: Line, method: str, *arguments: Any, retries: int = 3, **options: Any) -> Any:
    transport = httpx.MockTransport(line)
    with Client(URL, api_key="k1", retries=retries, transport=transport, sleep=line.waits.append) as client:
        return getattr(client, method)(*arguments, **options)


def ask_in_loop(line: Line, method: str, *arguments: Any, retries: int = 3, **options: Any) -> Any:
    async def ask() -> Any:
        transport = httpx.MockTransport(line)
        client = AsyncClient(URL, api_key="k1", retries=retries, transport=transport, sleep=line.sleep)
        async with client:
            return await getattr(client, method)(*arguments, **options)

    return anyio.run(ask)


@pytest.fixture(params=[ask_waiting, ask_in_loop], ids=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    """Asks a `Line` with each kind of client."""
    return request.param


# === Retries ===


def test_passing_failures_are_retried_under_one_id(ask: Ask) -> None:
    line = Line(refused(503, **{"Retry-After": "7"}), httpx.ConnectError("refused"), refused(429))
    assert ask(line, "predict", b"photograph").decision.score == 0.8
    assert [request.read() for request in line.requests] == [b"photograph"] * 4
    assert len({request.headers["X-Request-ID"] for request in line.requests}) == 1
    first, second, third = line.waits
    assert 7.0 <= first <= 14.0
    assert 0.5 <= second <= 1.0  # 0.5 s × 2, less up to a half
    assert 1.0 <= third <= 2.0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 415, 422, 500, 504])
def test_lasting_refusals_are_not_retried(ask: Ask, status: int) -> None:
    line = Line(refused(status))
    with pytest.raises(ServiceError) as caught:
        ask(line, "predict", b"photograph")
    error = caught.value
    assert (error.status, error.code, error.request_id) == (status, "corrupt_image", "9")
    assert error.detail == DETAIL
    assert (len(line.requests), line.waits) == (1, [])


@pytest.mark.parametrize(
    ("failure", "attempts", "code"),
    [
        (httpx.ConnectError("no route"), 4, "unreachable"),
        (httpx.ConnectTimeout(""), 4, "timeout"),
        (httpx.WriteError("broken pipe"), 4, "unreachable"),
        (httpx.ReadTimeout(""), 1, "timeout"),
    ],
)
def test_broken_connections_are_retried_and_slow_answers_not(
    ask: Ask, failure: Exception, attempts: int, code: str
) -> None:
    line = Line(*[failure] * 9)
    text = r"No answer from http://parts:8000/line4/v1/predict\?.*: \w"
    with pytest.raises(ServiceError, match=text) as caught:
        ask(line, "predict", b"photograph")
    assert (len(line.requests), caught.value.code, caught.value.status) == (attempts, code, None)
    assert caught.value.request_id == line.requests[0].headers["X-Request-ID"]


BROKEN = httpx.RemoteProtocolError("disconnected without an answer")


@pytest.mark.parametrize("loss", [BROKEN, httpx.ReadError("reset"), httpx.Response(502, html="Bad Gateway")])
def test_after_a_lost_connection_a_photograph_is_sent_only_once_more(ask: Ask, loss: Reply) -> None:
    line = Line(refused(503), loss, refused(503))
    assert ask(line, "predict", b"photograph").decision.score == 0.8
    assert len(line.requests) == 4
    line = Line(loss, refused(503), loss)
    with pytest.raises(ServiceError, match="Two replicas may have crashed on this photograph") as caught:
        ask(line, "predict", b"photograph", retries=9)
    assert len(line.requests) == 3
    assert caught.value.code == "replica_lost"
    assert caught.value.request_id == line.requests[0].headers["X-Request-ID"]
    line = Line(httpx.Response(502, json=PROBLEM | {"status": 502, "code": "replica_lost"}))
    with pytest.raises(ServiceError) as caught:  # the gateway has sent it twice
        ask(line, "predict", b"photograph")
    assert (caught.value.code, caught.value.status, len(line.requests)) == ("replica_lost", 502, 1)


DATE = "Sat, 21 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"Retry-After": "Sat, 21 Nov 2026 10:00:09 GMT", "Date": DATE}, 9.0),
        ({"Retry-After": "Sat, 21 Nov 2026 09:00:00 GMT", "Date": DATE}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], wait_s: float | None) -> None:
    encoded = {name: value.encode() for name, value in headers.items()}
    assert retry_after_s(httpx.Response(503, headers=encoded)) == wait_s


@pytest.mark.parametrize(
    ("asked", "number", "waits"),
    [
        ("1", 0.0, [1.0, 2.0, 4.0]),
        ("1", 1.0, [2.0, 4.0, 8.0]),
        ("12", 0.5, [18.0, 22.5, 22.5]),  # 12 to 24 s, then 15 to 30
        ("20", 0.0, [20.0, 20.0, 20.0]),
        ("20", 1.0, [30.0, 30.0, 30.0]),
        ("30", 0.5, [30.0, 30.0, 30.0]),
        ("31", 0.5, [None, None, None]),
        ("0", 1.0, [0.5, 1.0, 2.0]),
    ],
)
def test_waits_are_spread_and_never_shorter_than_retry_after(
    asked: str, number: float, waits: list[float | None]
) -> None:
    policy, reply = RetryPolicy(random=lambda: number), refused(503, **{"Retry-After": asked})
    assert [policy.wait_s([reply] * attempt) for attempt in (1, 2, 3)] == waits


# === Requests ===


def test_prediction_as_sent(ask: Ask) -> None:
    line = Line()
    options = {"threshold": 0.25, "mask": "rle", "space": "model", "model": "a/b", "version": "stable"}
    ask(line, "predict", b"photograph", deadline_ms=1500, **options)
    request = line.requests[0]
    assert request.method == "POST"
    path = b"/line4/v1/models/a%2Fb/versions/stable/predict?threshold=0.25&mask=rle&space=model"
    assert request.url.raw_path == path
    assert float(request.headers["X-Deadline-Ms"]) == 1500
    assert request.headers["Authorization"] == "Bearer k1"
    assert request.headers["Content-Type"].startswith("image/")


def test_inspection_as_sent(ask: Ask) -> None:
    line = Line(httpx.Response(200, json=INSPECTED))
    options = {"station": "line3", "part_id": "A/17", "threshold": 0.25, "mask": "rle", "model": "a/b"}
    answer = ask(line, "inspect", b"photograph", idempotency_key="shot 1", deadline_ms=1500, **options)
    assert (answer.record_id, answer.repeated, answer.decision.score) == (12, True, 0.8)
    request = line.requests[0]
    query = b"threshold=0.25&mask=rle&space=input&station=line3&part_id=A%2F17"
    assert request.url.raw_path == b"/line4/v1/models/a%2Fb/inspect?" + query
    assert request.headers["Idempotency-Key"] == "shot 1"
    assert float(request.headers["X-Deadline-Ms"]) == 1500
    assert request.headers["Content-Type"] == "image/*"
    assert request.read() == b"photograph"


def test_metadata_is_sent_as_a_form() -> None:
    line = Line(httpx.Response(200, json=INSPECTED))
    ask_waiting(line, "inspect", b"photograph", station="a", metadata={"shift": "früh"})
    request = line.requests[0]
    body = request.read()
    assert request.url.params["station"] == "a" and "metadata" not in request.url.params
    assert request.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert b'name="file"; filename="image-1"' in body
    assert b'name="metadata"\r\n' in body and '{"shift": "früh"}'.encode() in body


def test_all_attempts_of_an_inspection_have_one_key(ask: Ask) -> None:
    answer = httpx.Response(200, json=INSPECTED)
    line = Line(refused(503), httpx.ReadError("reset"), answer, answer)
    for _ in range(2):
        ask(line, "inspect", b"photograph")
    first, second, third, other = [request.headers["Idempotency-Key"] for request in line.requests]
    assert first == second == third != other


@pytest.mark.parametrize(
    ("method", "options", "text"),
    [
        ("inspect", {"idempotency_key": ""}, "The Idempotency-Key '' cannot be sent"),
        ("inspect", {"idempotency_key": "ä"}, "'ä' cannot be sent. Expected 1 to 128 printable ASCII"),
        ("inspect", {"idempotency_key": "a\nb"}, "cannot be sent"),
        ("inspect", {"idempotency_key": "a" * 129}, "cannot be sent"),
        ("inspect", {"station": "a\x85"}, r"station is 'a\\x85'. The character U\+0085 is not allowed"),
        ("inspect", {"part_id": "\uffff"}, r"part_id is '\\uffff'. The character U\+FFFF"),
        ("inspect", {"metadata": {"a": b"1"}}, "The metadata cannot be written as JSON"),
        ("inspect", {"metadata": {"a": float("nan")}}, "The metadata cannot be written as JSON"),
        ("inspect", {"model": ".."}, "'..' is not a model or version name"),
        ("predict", {"model": ".."}, "'..' is not a model or version name"),
        ("predict", {"model": "parts", "version": ""}, "'' is not a model or version name"),
        ("predict", {"version": "2"}, "version='2' was given without a model"),
    ],
)
def test_invalid_options(ask: Ask, method: str, options: dict[str, Any], text: str) -> None:
    line = Line()
    with pytest.raises(ConfigError, match=text):
        ask(line, method, b"photograph", **options)
    assert not line.requests


def test_each_kind_of_photograph(ask: Ask, tmp_path: Path) -> None:
    pixels = np.array([[0, 90], [200, 255]], np.uint8)
    path = tmp_path / "part.png"
    path.write_bytes(encode_png(pixels))
    for source in (path, path.read_bytes(), pixels, pixels[..., None]):
        line = Line()
        ask(line, "predict", source)
        np.testing.assert_array_equal(decode_image(line.requests[0].read(), "sent").pixels[..., 0], pixels)
        assert "threshold" not in line.requests[0].url.params
    with pytest.raises(TypeError, match="Expected bytes, a Path or a uint8 array"):
        ask(Line(), "predict", "part.png")
    with pytest.raises(ImageError, match=r"no\.png cannot be read"):
        ask(Line(), "predict", tmp_path / "no.png")


@pytest.mark.parametrize(
    ("reply", "ready"),
    [
        (httpx.Response(200, json={"status": "ready"}), True),
        (refused(503), False),
        (httpx.Response(502, html="Bad Gateway"), False),
        (httpx.ConnectError("refused"), False),
    ],
)
def test_readiness(ask: Ask, reply: Reply, ready: bool) -> None:
    line = Line(reply)
    assert ask(line, "ready") is ready
    assert len(line.requests) == 1


def test_other_requests(ask: Ask) -> None:
    line = Line(httpx.Response(200, json={"models": [MODEL]}), httpx.Response(200, json=RELOADED))
    assert [model.name for model in ask(line, "models")] == ["parts"]
    assert ask(line, "reload", "parts").loaded == ["2"]
    sent = [f"{request.method} {request.url.path}" for request in line.requests]
    assert sent == ["GET /line4/v1/models", "POST /line4/v1/admin/models/parts/reload"]


# === Answers ===


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (httpx.Response(403, html="<p>no"), r"not from the inspection service \(text/html.*403 unexpected"),
        (httpx.Response(200, html="<p>login"), r"/v1/predict.*\(text/html.*200 unexpected"),
        (httpx.Response(200, json={"detail": "x"}), r"\(application/json\).*200 unexpected"),
        (httpx.Response(308, headers={"Location": "https://b"}), "see https://b.*308 unexpected"),
        (httpx.Response(404, content=b"\xff"), r"\(no type\).*404 unexpected"),
    ],
)
def test_answers_of_something_else(ask: Ask, reply: httpx.Response, text: str) -> None:
    with pytest.raises(ServiceError, match=text) as caught:
        ask(Line(reply), "predict", b"photograph")
    assert str(caught.value).count("\n") == 0


def test_batch_answers_keep_the_order(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "part.png"
    path.write_bytes(b"first")
    items = [
        {"name": "part.png", "answer": ANSWER, "problem": None},
        {"name": "image-2", "answer": None, "problem": PROBLEM},
    ]
    line = Line(httpx.Response(200, json={"items": items}))
    answer, problem = ask(line, "predict_batch", [path, b"second"], mask="none")
    assert isinstance(answer, Answer)
    assert isinstance(problem, Problem)
    body = line.requests[0].read()
    assert line.requests[0].url.raw_path == b"/line4/v1/predict/batch?mask=none&space=input"
    for part in (b'name="file"; filename="part.png"', b'name="file"; filename="image-2"'):
        assert body.count(part) == 1
    assert body.index(b"first") < body.index(b"second")


# === Connection ===


@pytest.mark.parametrize("url", ["parts:8000", "ftp://parts", "http://", "http://parts:x", "", "http://[::1"])
def test_wrong_address(url: str) -> None:
    with pytest.raises(ConfigError, match="Expected one like http://host:8000"):
        Client(url)


@pytest.mark.parametrize("key", ["", "two words", "line\n", "schlüssel"])
def test_wrong_key_is_rejected_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError, match="The API key is empty or has") as caught:
        Client(URL, api_key=key)
    assert key not in str(caught.value) or not key


def test_wrong_certificate_file(tmp_path: Path) -> None:
    (tmp_path / "broken.pem").write_text("no certificate")
    for name in ("broken.pem", "none.pem"):
        with pytest.raises(ConfigError, match=f"{name} cannot be read as a certificate"):
            Client("https://parts", verify=tmp_path / name)


def test_import_without_httpx_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("segdec.client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"'httpx' is not installed. Install the extra 'client'"):
        importlib.import_module("segdec.client")
