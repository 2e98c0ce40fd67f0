"""The serving benchmarks run with small numbers, and say so when a target is missed.

Their figures are for people to read: an exit code that depends on speed is not looked at.
"""

import base64
import json
import math
import sys
import threading
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.reporting import Target, conclude, interleave, paired_ratio
from benchmarks.serving import cold_start, frameworks, overhead, overload, recording, reload, soak
from benchmarks.serving.load import (
    FAILED,
    Exchange,
    Load,
    closed_loop,
    encode_request,
    latency_ms,
    open_loop,
)
from benchmarks.serving.peers.work import MODEL_MS, inspect
from benchmarks.serving.server_process import ServerProcess, free_port
from benchmarks.untrained_models import photograph
from segdec.errors import RunError
from segdec.images import decode_image


class Answers(BaseHTTPRequestHandler):
    """Repeats a body; refuses an empty one; hangs up on `gone`."""

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
        """Says nothing."""


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
    """The service with a stub for its network: it starts fast."""
    with frameworks.start_ours({MODEL_MS: "0"}) as service:
        yield service


def post(body):
    return encode_request("POST", "/", body)


# === Load ===


def test_a_count_of_requests(port):
    load = closed_loop(port, [post(b"one"), post(b"two")], clients=3, count=20, keep_bodies=True)
    assert load.statuses() == {200: 20}
    assert {exchange.body for exchange in load.exchanges} == {b"one", b"two"}
    assert load.rate == pytest.approx(20 / load.duration_s)


def test_requests_that_are_made_by_their_number(port):
    load = closed_loop(port, lambda number: post(b"%d" % number), clients=3, count=20, keep_bodies=True)
    assert {exchange.body for exchange in load.exchanges} == {b"%d" % number for number in range(20)}


def test_refusals_and_failures_are_told_apart(port):
    load = closed_loop(port, [post(b"")], clients=2, count=4)
    assert load.statuses() == {503: 4}
    assert all(exchange.retry_after for exchange in load.exchanges)
    load = closed_loop(port, [post(b"gone")], clients=1, count=3)
    assert load.statuses() == {FAILED: 3}
    assert b"ConnectionResetError" in load.exchanges[0].body
    assert closed_loop(free_port(), [post(b"x")], clients=1, count=2).statuses() == {FAILED: 2}


def test_a_constant_rate(port):
    load = open_loop(port, post(b"x"), rate=100, seconds=0.2)
    assert load.statuses() == {200: 20}
    assert sorted(exchange.at_s for exchange in load.exchanges) == pytest.approx([n / 100 for n in range(20)])


def test_quantiles():
    exchanges = [Exchange(0, ms, 200, False, b"") for ms in (1, 2, 3, 10)]
    assert latency_ms(exchanges, 0.5) == 2.5
    assert latency_ms(exchanges, 1) == 10
    assert latency_ms([], 0.5) != latency_ms([], 0.5)


# === Reporting ===


def test_a_missed_target_is_the_exit_code(tmp_path, capsys):
    targets = [Target("rate", 2.0, lowest=2), Target("failures", 1, highest=0)]
    assert conclude(tmp_path / "new" / "figures.json", [{"a": "x", "b": 1.5}], targets, side_px=8) == 1
    printed = capsys.readouterr().out
    assert "met     rate: 2 (≥ 2)" in printed
    assert "MISSED  failures: 1 (≤ 0)" in printed
    written = json.loads((tmp_path / "new" / "figures.json").read_text())
    assert [target["met"] for target in written["targets"]] == [True, False]
    assert (written["rows"], written["side_px"]) == ([{"a": "x", "b": 1.5}], 8)
    assert written["machine"]["cores"]
    assert conclude(None, [], targets[:1]) == 0
    assert not Target("nothing measured", float("nan"), highest=1).met


def test_competitors_take_turns():
    asked = []

    def measure(name):
        asked.append(name)
        return float(len(asked))

    measured = interleave({name: lambda name=name: measure(name) for name in "ab"}, rounds=2)
    assert asked == ["a", "b"] * 3
    assert measured == {"a": [3.0, 5.0], "b": [4.0, 6.0]}  # the first round warms up


def test_a_ratio_of_what_was_measured_side_by_side():
    found = paired_ratio([2.0, 8.0], [1.0, 2.0])  # logarithms: 1 and 2 ln 2, deviation ln 2 / √2
    half = 12.706 * math.log(2) / 2
    assert found["ratio"] == pytest.approx(2**1.5)
    assert math.log(found["to"] / found["ratio"]) == pytest.approx(half, rel=1e-4)
    assert math.log(found["ratio"] / found["from"]) == pytest.approx(half, rel=1e-4)
    assert math.isnan(paired_ratio([2.0], [1.0])["from"])


def test_a_server_that_ends_says_why():
    failing = ServerProcess([sys.executable, "-c", "raise SystemExit('no model at {port}')"])
    with pytest.raises(RunError, match=f"no model at {failing.port}"), failing:
        pass


# === Scripts ===


@pytest.mark.slow
def test_frameworks(capsys):
    assert frameworks.main(["--peers", "--rounds", "1", "--seconds", "0.1"]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[3:5]] == ["uvicorn, no work", "segdec"]


def test_the_stub_answers_in_the_service_what_it_does_in_the_peers(stub, monkeypatch):
    monkeypatch.setenv(MODEL_MS, "0")
    answer = inspect([photograph(48, 64)])[0]
    assert answer["label"] == "defect"
    load = closed_loop(stub.port, [frameworks.ask_ours(photograph(48, 64))], count=1, keep_bodies=True)
    ours = json.loads(load.exchanges[0].body)
    assert ours["decision"]["label"] == answer["label"]
    assert ours["decision"]["score"] == pytest.approx(answer["score"])
    assert mask_of(ours["mask"]["data"]) == mask_of(answer["mask"])


def mask_of(encoded):
    return decode_image(base64.b64decode(encoded), "mask").pixels.tolist()


@pytest.mark.slow
def test_overhead(stub, tiny_artifact, monkeypatch, capsys):
    monkeypatch.setattr(overhead, "start_service", lambda *_: nullcontext(stub))
    words = ["--rounds", "1", "--seconds", "0.2", "--side", "32", "--model", str(tiny_artifact)]
    assert overhead.main(words) in (0, 1)
    assert "service / faster way in process" in capsys.readouterr().out


@pytest.mark.slow
def test_recording(tmp_path, capsys):
    words = ["--stub", "--rounds", "1", "--seconds", "0.3", "--folder", str(tmp_path)]
    assert recording.main(words) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["/v1/predict", "/v1/inspect"]


def test_no_two_parts_have_the_same_photograph():
    images = [photograph(16, 24), photograph(16, 24, seed=1)]
    requests = [
        recording.Parts("/at?part={}", images, first)(number) for first in (0, 4) for number in range(4)
    ]
    parts = [request.partition(b"\r\n\r\n")[2] for request in requests]
    assert len(set(parts)) == 8
    assert [request.split()[1] for request in requests[:2]] == [b"/at?part=0", b"/at?part=1"]
    for number, part in enumerate(parts):
        same = decode_image(images[number % 2], "photograph").pixels
        assert (decode_image(part, "photograph").pixels == same).all()


@pytest.mark.slow
def test_overload(stub, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(overload, "start_service", lambda *_: nullcontext(stub))
    words = ["--seconds", "0.5", "--capacity-seconds", "0.5", "--side", "32", "--model", str(tmp_path)]
    assert overload.main(words) in (0, 1)
    assert "met     answers that are neither 200 nor 503 with Retry-After: 0" in capsys.readouterr().out


def test_overload_finds_what_is_out_of_order():
    refused = [Exchange(0, 1, 503, True, b"")] * 5
    load = Load((Exchange(0, 250, 200, False, b""), *refused, Exchange(0, 1, 503, False, b"")), 1)
    livez = Load((Exchange(0, 10, 200, False, b""), Exchange(0, 1, FAILED, False, b"")), 1)
    found = {target.name: (target.value, target.met) for target in overload.targets(load, livez, 100)}
    assert found == {
        "answers that are neither 200 nor 503 with Retry-After": (1, False),
        "share refused: there was an overload": (pytest.approx(6 / 7), True),
        "p99 of accepted, queue bounds": (2.5, False),
        "p99 of /livez, ms": (10, True),
        "/livez not answered with 200": (1, False),
    }


@pytest.mark.slow
def test_soak(stub, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(soak, "start_service", lambda *_: nullcontext(stub))
    assert soak.main(["--requests", "40", "--sizes", "5", "--model", str(tmp_path)]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3:24]] == [str(2 * number) for number in range(21)]


def test_sizes_differ():
    assert len(set(soak.photographs(50))) == 50


@pytest.mark.slow
def test_reload(capsys):
    code = reload.main(["--seconds", "3", "--every", "0.5"])
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert "statuses_of_reloads: {200: 5}" in printed


def test_reload_finds_answers_of_no_version():
    expected = {("1", "aa"): 0.25, ("2", "bb"): 0.75}

    def exchange(version, sha256, score):
        answer = {"model": {"version": version, "sha256": sha256}, "decision": {"score": score}}
        return Exchange(0, 1, 200, False, json.dumps(answer).encode())

    good = [exchange("1", "aa", 0.25), exchange("2", "bb", 0.75)]
    assert reload.count_mixed(good, expected) == 0
    mixed = [exchange("1", "bb", 0.25), exchange("1", "aa", 0.75), exchange("3", "cc", 0.25)]
    assert reload.count_mixed([*good, *mixed], expected) == 3


@pytest.mark.slow
def test_cold_start(tiny_artifact, capsys):
    assert cold_start.main(["--rounds", "1", "--model", str(tiny_artifact)]) == 0
    printed = capsys.readouterr().out
    assert "start to ready" in printed
    assert "import tensorflow" in printed


def test_reports_of_a_start():
    report = (
        "import time: self [us] | cumulative | imported package\n"
        "import time:       500 |       500 |     json.decoder\n"
        "import time:      1500 |      2000 |   json\n"
        "import time:      3000 |      5000 | api.listener.server\n"
        "import time:      1000 |      1000 | api\n"
    )
    assert cold_start.read_imports(report) == {"standard library": 2.0, "api": 4.0}
    log = "2026-01-01T00:00:00Z INFO Ready: load 120 ms, self-test 30 ms, warm-up 450 ms\n"
    assert cold_start.read_phases(log) == {"load": 120, "self-test": 30, "warm-up": 450}
