import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI

PNG = {"Content-Type": "image/png"}


def calling(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


@asynccontextmanager
async def started(app: FastAPI) -> AsyncIterator[None]:
    async with app.router.lifespan_context(app):
        await app.state.service.start()
        yield


# === Start and health ===


def test_importing_the_app_loads_neither_tensorflow_nor_a_model():
    code = "import sys, api.app, api.listener.server; sys.exit({'tensorflow', 'keras'} & {*sys.modules} or 0)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_service_is_ready_only_between_start_and_stop(app, part):
    async def scenario() -> None:
        async with calling(app) as client:
            assert (await client.get("/livez")).json() == {"status": "alive"}
            assert (await client.get("/readyz")).json()["code"] == "not_ready"
            refused = await client.post("/v1/predict", content=part, headers=PNG)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            async with app.router.lifespan_context(app):
                assert (await client.get("/readyz")).json()["code"] == "not_ready"
                await app.state.service.start()
                assert (await client.get("/readyz")).json() == {"status": "ready"}
                app.state.service.drain()
                assert (await client.get("/readyz")).json()["code"] == "draining"
            assert (await client.get("/readyz")).status_code == 503

    asyncio.run(scenario())


def test_every_batch_size_is_warmed_before_the_first_request(serve, app, predictor):
    with serve(app):
        assert predictor.shapes == [(size, 16, 24, 1) for size in (1, 2, 4, 8)]


def test_model_that_cannot_run_does_not_become_ready(serve, app, predictor):
    predictor.failure = RuntimeError("broken")
    with pytest.raises(RuntimeError, match="broken"), serve(app):
        pass
    assert not app.state.service.ready


# === Scheduling ===


def test_requests_beyond_the_queue_are_refused_and_health_goes_on(make_app, predictor, part):
    async def scenario() -> tuple[list[httpx.Response], httpx.Response]:
        app = make_app(queue_size=2, retry_after_s=7)
        async with started(app), calling(app) as client:
            predictor.gate.clear()
            tasks = [
                asyncio.create_task(client.post("/v1/predict", content=part, headers=PNG)) for _ in range(8)
            ]
            async with asyncio.timeout(20):
                while sum(task.done() for task in tasks) < 5:
                    await asyncio.sleep(0.01)
            alive = await client.get("/livez")
            assert sum(task.done() for task in tasks) == 5
            predictor.gate.set()
            return await asyncio.gather(*tasks), alive

    answers, alive = asyncio.run(scenario())
    refused = [answer for answer in answers if answer.status_code == 503]
    assert alive.status_code == 200
    assert [answer.status_code for answer in answers].count(200) == 3
    assert {(a.json()["code"], a.headers["Retry-After"]) for a in refused} == {("queue_full", "7")}


# === Models and description ===


def test_models_are_listed_with_their_manifest(client):
    listed = client.get("/v1/models").json()["models"]
    assert [model["name"] for model in listed] == ["unnamed"]
    assert listed[0]["manifest"]["classes"] == ["good", "scratch", "spot"]
    assert client.get("/v1/models/unnamed").json() == {"models": listed}


def test_every_route_describes_problems_and_nothing_else(client):
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        for operation in operations.values():
            kinds = {
                kind
                for status, answer in operation["responses"].items()
                if status != "200"
                for kind in answer["content"]
            }
            assert kinds == {"application/problem+json"}, path
