"""The shipped configuration of nginx, between replicas that are lost, full or not running."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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

PHOTOGRAPH = b"photograph" * 10_000


class Replica:
    """Answers, or fails: `lost` (closes the connection), `full` (503), `late` (504), `broken` (500).

    Attributes:
        received: Request id and idempotency key of each photograph that arrived.
    """

    def __init__(self) -> None:
        self.fault = ""
        self.received: list[tuple[str | None, str | None]] = []
        replica = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(200, {"status": "ready"})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert body == PHOTOGRAPH
                replica.received.append((self.headers["X-Request-ID"], self.headers["Idempotency-Key"]))
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


class Pair:
    """Replicas behind nginx."""

    def __init__(self, pair: list[Replica], port: int) -> None:
        self.replicas = pair
        self.url = f"http://127.0.0.1:{port}"

    def set_faults(self, *faults: str) -> None:
        for replica, fault in zip(self.replicas, faults, strict=True):
            replica.fault = fault
            replica.received.clear()

    def post(self, path: str = "/v1/predict", **headers: str) -> httpx.Response:
        return httpx.post(f"{self.url}{path}", content=PHOTOGRAPH, headers=headers, timeout=30)

    def received(self) -> list[tuple[str | None, str | None]]:
        return [entry for replica in self.replicas for entry in replica.received]


@contextmanager
def balanced(folder: Path, running: int) -> Iterator[Pair]:
    """Starts nginx in front of two addresses, at which one or two replicas are running."""
    started = [Replica() for _ in range(running)]
    first, second = ([free_port()] + [replica.port for replica in started])[-2:]
    try:
        with replicas.balance(folder, (first, second), replicas.NGINX_RETRIES) as balancer:
            yield Pair(started, balancer.port)
    finally:
        for replica in started:
            replica.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Iterator[Pair]:
    with balanced(tmp_path_factory.mktemp("pair"), running=2) as pair:
        yield pair


@pytest.mark.parametrize("fault", ["lost", "full"])
def test_photograph_of_a_failed_replica_goes_to_the_other_one(pair, fault):
    pair.set_faults(fault, "")
    assert [pair.post().status_code for _ in range(4)] == [200] * 4  # whichever nginx chooses first
    assert pair.replicas[0].received


def test_photograph_that_crashed_two_replicas_is_sent_to_no_other(pair):
    pair.set_faults("lost", "lost")
    answer = pair.post(**{"X-Request-ID": "part-7"})
    problem = answer.json()
    assert (problem["code"], problem["request_id"], problem["status"]) == ("replica_lost", "part-7", 502)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert [name for name, _ in pair.received()] == ["part-7", "part-7"]
    pair.set_faults("lost", "lost")
    with Client(pair.url) as client, pytest.raises(ServiceError) as caught:
        client.predict(PHOTOGRAPH)
    assert (caught.value.code, caught.value.status, len(pair.received())) == ("replica_lost", 502, 2)


@pytest.mark.parametrize("fault", ["lost", "full"])
def test_both_replicas_get_the_same_key(pair, fault):
    keys = []
    for headers in ({"X-Request-ID": "shift-7"}, {"X-Request-ID": "shift-7"}, {"Idempotency-Key": "part-7"}):
        pair.set_faults(fault, fault)
        pair.post("/v1/inspect", **headers)
        (_, first), (_, second) = pair.received()
        assert first == second
        keys.append(first)
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys[:2])
    assert keys[0] != keys[1], "a client may send several photographs under one id"
    assert keys[2] == "part-7"


@pytest.mark.parametrize(("fault", "status"), [("late", 504), ("broken", 500)])
def test_other_errors_are_passed_on(pair, fault, status):
    pair.set_faults(fault, fault)
    answer = pair.post()
    assert (answer.status_code, answer.json()["code"], len(pair.received())) == (status, fault, 1)


def test_two_full_replicas_are_an_error_with_a_time_to_wait(pair):
    pair.set_faults("full", "full")
    answer = pair.post()
    assert (answer.status_code, answer.headers["Retry-After"], len(pair.received())) == (503, "3", 2)


def test_replica_that_is_not_running_is_skipped(tmp_path):
    with balanced(tmp_path, running=1) as single:
        assert [single.post().status_code for _ in range(4)] == [200] * 4
        single.set_faults("full")
        for _ in range(4):
            answer = single.post()
            assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
        single.set_faults("lost")
        assert {single.post().status_code for _ in range(4)} == {502}
        assert len(single.received()) == 4
