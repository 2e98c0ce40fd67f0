"""The serving benchmarks run with small numbers. Exit codes that depend on speed are not checked."""

import threading
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.serving import memory_bound, overhead, overload, recording
from benchmarks.serving.load import FAILED, closed_loop, encode_request, open_loop
from benchmarks.serving.stub_service import start_stub


class Answers(BaseHTTPRequestHandler):
    """Echoes a body; answers 503 to an empty one; closes the connection on `gone`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if body == b"gone":
            self.close_connection = True
            return
        self.send_response(200 if body else 503)
        if not body:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        """Logs nothing."""


@pytest.fixture(scope="module")
def port():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def stub():
    """The service with a stub in place of the network."""
    with start_stub({}) as service:
        yield service


def post(body):
    return encode_request("POST", "/", body)


def test_loads_have_answers_rejections_and_failures(port):
    load = closed_loop(port, [post(b"one"), post(b"two")], clients=3, count=20)
    assert load.statuses() == {200: 20}
    assert load.rate == pytest.approx(20 / load.duration_s)
    load = closed_loop(port, [post(b"")], clients=2, count=4)
    assert load.statuses() == {503: 4}
    assert all(exchange.retry_after for exchange in load.exchanges)
    load = closed_loop(port, [post(b"gone")], clients=1, count=3)
    assert load.statuses() == {FAILED: 3}
    assert b"ConnectionResetError" in load.exchanges[0].body
    load = open_loop(port, post(b"x"), rate=100, seconds=0.2)
    assert load.statuses() == {200: 20}
    assert sorted(exchange.at_s for exchange in load.exchanges) == pytest.approx([n / 100 for n in range(20)])


@pytest.mark.slow
def test_overhead_and_overload(stub, tiny_artifact, monkeypatch, capsys):
    for module in (overhead, overload):
        monkeypatch.setattr(module, "start_service", lambda *_: nullcontext(stub))
    arguments = ["--seconds", "0.3", "--side", "32", "--model", str(tiny_artifact)]
    assert overhead.main([*arguments, "--rounds", "1"]) in (0, 1)
    assert "service / faster way in process" in capsys.readouterr().out
    assert overload.main([*arguments, "--capacity-seconds", "0.5"]) in (0, 1)
    assert "met     answers other than 200 and 503 with Retry-After: 0" in capsys.readouterr().out


@pytest.mark.slow
def test_recording(tmp_path, capsys):
    arguments = ["--stub", "--rounds", "1", "--seconds", "0.3", "--folder", str(tmp_path)]
    assert recording.main(arguments) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["/v1/predict", "/v1/inspect"]


@pytest.mark.slow
def test_memory_bound(quick_artifact, monkeypatch, capsys):
    monkeypatch.setattr(memory_bound, "RELEASE_S", 0.0)
    monkeypatch.setattr(memory_bound, "BODIES", 4)
    arguments = ["--model", str(quick_artifact), "--engine", "openvino", "--rounds", "1"]
    assert memory_bound.main(arguments) in (0, 1)
    assert "4 bodies of 31 MB" in capsys.readouterr().out
