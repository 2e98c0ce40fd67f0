import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn

from api.server import DrainingServer
from segdec.images import encode_png
from tests.api.test_server import start

PNG = {"Content-Type": "image/png"}
PHOTOGRAPHS = 12


@pytest.fixture
def running(tiny_artifact: Path, tmp_path: Path) -> Iterator[tuple]:
    """The real server, as a process, and its address."""
    arguments = ("--model", str(tiny_artifact), "--port", "0", "--batch-sizes", "[1]")
    with (tmp_path / "stderr").open("w") as stderr, start(*arguments, stderr=stderr) as process:
        try:
            yield process, process.stdout.readline().split(" at ")[-1].strip()
        finally:
            process.kill()


@pytest.mark.slow
def test_photographs_that_were_taken_are_answered_after_sigterm(running):
    process, url = running
    noise = np.random.default_rng(0).integers(0, 256, (1500, 1500, 1), np.uint8)
    body = encode_png(noise)

    async def scenario() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            tasks = [
                asyncio.create_task(client.post("/v1/predict?mask=none", content=body, headers=PNG))
                for _ in range(PHOTOGRAPHS)
            ]
            # Once one is answered, all have been taken: decoding is slower than sending.
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            process.send_signal(signal.SIGTERM)
            return await asyncio.gather(*tasks)

    answers = asyncio.run(scenario())
    assert [answer.status_code for answer in answers] == [200] * PHOTOGRAPHS
    assert process.wait(timeout=60) == 0


def test_first_sigterm_drains_and_the_delay_goes_on_serving(serve, make_app, part):
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


def test_without_a_delay_the_server_stops_at_once(app):
    server = DrainingServer(uvicorn.Config(app), app, drain_delay_s=0.0)
    server.handle_exit(signal.SIGTERM, None)
    assert asyncio.run(server.on_tick(1))


def test_delay_ends(serve, make_app):
    with serve(make_app()) as client:
        server = DrainingServer(uvicorn.Config(client.app), client.app, drain_delay_s=1e-9)
        server.handle_exit(signal.SIGTERM, None)
        assert asyncio.run(server.on_tick(1))
