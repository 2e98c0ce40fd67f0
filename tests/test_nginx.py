"""The configuration for nginx that ships, between replicas that are lost, full or not there."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.serving import replicas
from benchmarks.serving.server_process import free_port
from segdec.client import Client
from segdec.errors import ServiceError

pytestmark = pytest.mark.skipif(replicas.find_nginx() is None, reason="needs nginx")

RESEND = "X-Segdec-Resend"
PHOTOGRAPH = b"photograph" * 10_000


class Replica:
    """Answers, or does what `fault` says: `lost` (ends in the middle), `full` (503), `late` (504), `gone`.

    Attributes:
        taken: Marks and ids of the photographs that arrived whole.
        keys: Their keys, under which each is recorded once.
    """

    def __init__(self) -> None:
        self.fault = ""
        self.taken: list[tuple[str | None, str | None]] = []
        self.keys: list[str | None] = []
        replica = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(200, {"status": "ready"})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert body == PHOTOGRAPH
                replica.taken.append((self.headers[RESEND], self.headers["X-Request-ID"]))
                replica.keys.append(self.headers["Idempotency-Key"])
                if replica.fault == "lost":
                    self.close_connection = True
                    return
                status = {"full": 503, "late": 504, "broken": 500}.get(replica.fault, 200)
                self._answer(status, {"code": replica.fault})

            def _answer(self, status: int, content: dict[str, Any]) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Retry-After", "3")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


class Line:
    """Two replicas behind nginx."""

    def __init__(self, pair: list[Replica], port: int) -> None:
        self.replicas = pair
        self.url = f"http://127.0.0.1:{port}"

    def fault(self, first: str, second: str) -> None:
        for replica, fault in zip(self.replicas, (first, second), strict=True):
            replica.fault = fault
            replica.taken.clear()
            replica.keys.clear()

    def ask(self, path: str = "/v1/predict", **headers: str) -> httpx.Response:
        return httpx.post(f"{self.url}{path}", content=PHOTOGRAPH, headers=headers, timeout=30)

    @property
    def taken(self) -> list[tuple[str | None, str | None]]:
        return [entry for replica in self.replicas for entry in replica.taken]


@pytest.fixture(scope="module")
def line(tmp_path_factory) -> Iterator[Line]:
    pair = [Replica(), Replica()]
    folder: Path = tmp_path_factory.mktemp("nginx")
    try:
        ports = (pair[0].port, pair[1].port)
        with replicas.balance(folder, ports, replicas.NGINX_RETRIES) as balancer:
            yield Line(pair, balancer.port)
    finally:
        for replica in pair:
            replica.close()


@pytest.fixture(scope="module")
def half_line(tmp_path_factory) -> Iterator[Line]:
    """One of the two replicas is not there."""
    replica = Replica()
    folder: Path = tmp_path_factory.mktemp("half")
    try:
        with replicas.balance(folder, (free_port(), replica.port), replicas.NGINX_RETRIES) as balancer:
            yield Line([replica], balancer.port)
    finally:
        replica.close()


def test_photograph_of_a_lost_replica_is_sent_once_more_and_marked(line):
    line.fault("lost", "")
    for _ in range(4):  # whichever of them nginx asks first
        answer = line.ask()
        assert answer.status_code == 200
    marks = [mark for mark, _ in line.replicas[1].taken]
    assert len(line.replicas[0].taken) == marks.count("1") > 0
    assert all(mark is None for mark, _ in line.replicas[0].taken)


def test_photograph_that_ended_two_replicas_is_not_sent_again(line):
    line.fault("lost", "lost")
    answer = line.ask(**{"X-Request-ID": "part-7"})
    assert (answer.status_code, answer.headers[RESEND]) == (502, "1")
    problem = answer.json()
    assert (problem["code"], problem["request_id"], problem["status"]) == ("replica_lost", "part-7", 502)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert sorted(line.taken, key=str) == [("1", "part-7"), (None, "part-7")]


def test_marked_photograph_is_not_sent_again(line):
    line.fault("lost", "lost")
    answer = line.ask(**{RESEND: "1"})
    assert (answer.status_code, answer.json()["code"]) == (502, "replica_lost")
    assert [mark for mark, _ in line.taken] == ["1"]


def test_client_sends_what_two_replicas_died_of_no_further(line):
    line.fault("lost", "lost")
    with Client(line.url, sleep=lambda _: None) as client, pytest.raises(ServiceError) as caught:
        client.predict(PHOTOGRAPH)
    assert (caught.value.code, caught.value.status) == ("replica_lost", 502)
    assert sorted(str(mark) for mark, _ in line.taken) == ["1", "None"]


@pytest.mark.parametrize("fault", ["lost", "full"])
def test_both_replicas_are_sent_the_same_key(line, fault):
    keys = []
    for headers in ({"X-Request-ID": "shift-7"}, {"X-Request-ID": "shift-7"}, {"Idempotency-Key": "part-7"}):
        line.fault(fault, fault)
        line.ask("/v1/inspect", **headers)
        (first,), (second,) = (replica.keys for replica in line.replicas)
        assert first == second
        keys.append(first)
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys[:2])
    assert keys[0] != keys[1], "the id is the client's: it may stand for several photographs"
    assert keys[2] == "part-7"


@pytest.mark.parametrize("fault", ["late", "broken"])
def test_answers_that_are_none_of_a_lost_replica_are_passed_on(line, fault):
    line.fault(fault, fault)
    answer = line.ask()
    assert (answer.status_code, answer.json()["code"]) == ({"late": 504, "broken": 500}[fault], fault)
    assert len(line.taken) == 1


def test_full_replica_is_passed_over_unmarked(line):
    line.fault("full", "")
    for _ in range(4):
        assert line.ask().status_code == 200
    assert {mark for mark, _ in line.taken} == {None}
    line.fault("full", "full")
    answer = line.ask()
    assert (answer.status_code, answer.headers["Retry-After"], len(line.taken)) == (503, "3", 2)


def test_full_and_then_lost_is_not_sent_again(line):
    line.fault("full", "lost")
    codes = {line.ask().json()["code"] for _ in range(4)}
    # Asked first, the lost one is sent again to the full one, which says so.
    assert codes <= {"replica_lost", "full"}
    assert len([mark for mark, _ in line.replicas[1].taken]) == 4


def test_replica_that_is_not_there_is_passed_over(half_line):
    for _ in range(4):
        assert half_line.ask().status_code == 200
    half_line.replicas[0].fault = "full"
    for _ in range(4):
        answer = half_line.ask()
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    half_line.replicas[0].fault = "lost"
    half_line.replicas[0].taken.clear()
    for _ in range(4):  # the other one takes no connection: none is left to send it to
        assert half_line.ask().status_code in (502, 503)
    assert len(half_line.taken) == 4
    half_line.replicas[0].fault = ""
