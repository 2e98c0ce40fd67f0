import httpx
import pytest

from tests.api.conftest import PNG


@pytest.mark.anyio
async def test_service_is_ready_only_between_start_and_stop(app, part):
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/livez")).json() == {"status": "alive"}
        assert (await client.get("/readyz")).json()["code"] == "not_ready"
        refused = await client.post("/v1/predict", content=part, headers=PNG)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        async with app.router.lifespan_context(app):
            assert (await client.get("/readyz")).json()["code"] == "not_ready"
            await app.state.service.start()
            assert (await client.get("/readyz")).json() == {"status": "ready"}
            app.state.service.receivers.problems = lambda: {"opcua_down": "OPC UA has ended."}
            ready = (await client.get("/readyz")).json()
            problems = {"problems": ["OPC UA has ended."], "codes": ["opcua_down"]}
            assert ready == {"status": "degraded", **problems}
            app.state.service.drain()
            assert (await client.get("/readyz")).json()["code"] == "draining"
        assert (await client.get("/readyz")).status_code == 503


def test_every_batch_size_is_warmed_before_the_first_request(serve, app, predictor):
    with serve(app):
        assert predictor.shapes == [(size, 16, 24, 1) for size in (1, 2, 4, 8)]


def test_model_that_cannot_run_does_not_become_ready(serve, app, predictor):
    predictor.failure = RuntimeError("broken")
    with pytest.raises(RuntimeError, match="broken"), serve(app):
        pass
    assert not app.state.service.inspection.ready
