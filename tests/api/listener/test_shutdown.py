import asyncio
import signal
from contextlib import closing

import httpx
import numpy as np
import pytest
import uvicorn

from api.inference.watchdog import EXIT_AFTER_S, Watchdog
from api.listener.server import DrainingServer
from segdec.images import encode_png
from tests.api.conftest import PNG, part_image
from tests.api.listener.test_http_protocol import LIVE, Wire, ask


@pytest.mark.slow
def test_received_photographs_are_answered_after_sigterm(start_stubbed):
    stubbed = start_stubbed()
    url = "http://{}:{}".format(*stubbed.address)
    noise = np.random.default_rng(0).integers(0, 256, (1500, 1500, 1), np.uint8)
    body = encode_png(noise)

    async def scenario() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            tasks = [
                asyncio.create_task(client.post("/v1/predict?mask=none", content=body, headers=PNG))
                for _ in range(12)
            ]
            # Once one is answered, all have arrived: decoding is slower than sending.
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            stubbed.process.send_signal(signal.SIGTERM)
            return await asyncio.gather(*tasks)

    answers = asyncio.run(scenario())
    assert [answer.status_code for answer in answers] == [200] * 12
    assert stubbed.process.wait(timeout=60) == 0


def test_server_stops_after_the_delay_or_a_second_signal(serve, make_app, part):
    with serve(make_app()) as client:
        server = DrainingServer(uvicorn.Config(client.app), client.app, drain_delay_s=3600.0)
        server.handle_exit(signal.SIGTERM, None)
        refused = client.post("/v1/predict", content=part, headers=PNG)
        assert (refused.status_code, refused.json()["code"]) == (503, "draining")
        assert client.get("/readyz").status_code == 503
        assert client.get("/livez").status_code == 200
        assert not asyncio.run(server.on_tick(1))
        server.handle_exit(signal.SIGTERM, None)
        assert asyncio.run(server.on_tick(2))
        for delay_s in (0.0, 1e-9):
            server = DrainingServer(uvicorn.Config(client.app), client.app, drain_delay_s=delay_s)
            server.handle_exit(signal.SIGTERM, None)
            assert asyncio.run(server.on_tick(1))


# === What cannot be finished ===


def post(part: bytes, path: bytes = b"/v1/predict", headers: bytes = b"") -> bytes:
    head = b"POST %s HTTP/1.1\r\nHost: test\r\nContent-Type: image/png\r\n" % path
    return b"%s%sContent-Length: %d\r\n\r\n%s" % (head, headers, len(part), part)


@pytest.mark.slow
def test_unanswered_requests_get_503_when_the_drain_time_ends(start_stubbed):
    stubbed = start_stubbed("--drain-s", "0", hangs="infer")
    part = encode_png(part_image())
    with closing(Wire(stubbed.address)) as wire, closing(Wire(stubbed.address)) as idle:
        wire.send(post(part, headers=b"X-Request-ID: part-7\r\n"))
        stubbed.wait_for("infer")
        stubbed.process.send_signal(signal.SIGTERM)
        answer = wire.response()
        assert answer.problem() == (503, "draining")
        assert answer.body["request_id"] == answer.headers["x-request-id"] == "part-7"
        assert (answer.headers["connection"], answer.headers["retry-after"]) == ("close", "1")
        assert wire.ended()
        assert idle.ended()
    assert stubbed.process.wait(timeout=60) == 70
    log = stubbed.log.read_text()
    assert "Traceback" not in log
    assert "1 request was not finished" in log


@pytest.mark.slow
def test_unfinished_bodies_get_503_when_the_drain_time_ends(start_stubbed, part):
    stubbed = start_stubbed("--drain-s", "0")
    with closing(Wire(stubbed.address)) as wire:
        wire.send(post(part)[:-10])
        with closing(Wire(stubbed.address)) as other:  # so the first one has been read
            other.send(LIVE)
            assert other.response().status == 200
        stubbed.process.send_signal(signal.SIGTERM)
        assert wire.response().problem() == (503, "draining")
        assert wire.ended()
    assert stubbed.process.wait(timeout=60) == 70


@pytest.mark.slow
def test_hanging_engine_without_a_client_does_not_delay_the_stop(start_stubbed, part):
    stubbed = start_stubbed(hangs="infer")
    with closing(Wire(stubbed.address)) as wire:
        wire.send(post(part))
        stubbed.wait_for("infer")
    with closing(Wire(stubbed.address)) as wire:
        gone = b'segdec_rejections_total{reason="client_gone"} 1.0'
        assert any(gone in ask(wire, "/metrics").content for _ in range(10_000))
        stubbed.process.send_signal(signal.SIGTERM)
        assert wire.ended()
    assert stubbed.process.wait(timeout=60) == 0


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_interrupt_ends_the_service_while_its_engine_hangs(start_stubbed, part, times):
    stubbed = start_stubbed("--drain-s", "0" if times == 1 else "3600", hangs="infer")
    with closing(Wire(stubbed.address)) as wire, closing(Wire(stubbed.address)) as idle:
        wire.send(post(part))
        stubbed.wait_for("infer")
        for _ in range(times):
            stubbed.process.send_signal(signal.SIGINT)
            assert idle.ended()  # two signals at once would count as one
        assert wire.response().problem() == (503, "draining")
    assert stubbed.process.wait(timeout=60) == 130
    assert "interrupted" in stubbed.log.read_text().splitlines()[-1]


def test_service_with_a_hanging_engine_exits(serve, make_app):
    with serve(make_app(engine_timeout_s=1.0, engine_lost_s=1.0)) as client:
        now = 0.0
        service = client.app.state.service.inspection
        service.watchdog = Watchdog(1, 1, clock=lambda: now)
        server = DrainingServer(uvicorn.Config(client.app), client.app, drain_delay_s=3600.0)
        with service.watchdog.watch("infer"):
            assert not asyncio.run(server.on_tick(0))
            now = 2.0
            assert not asyncio.run(server.on_tick(0))
            now = 2.0 + EXIT_AFTER_S
            assert asyncio.run(server.on_tick(0))
            assert (server.exit_code, service.state) == (70, "draining")
