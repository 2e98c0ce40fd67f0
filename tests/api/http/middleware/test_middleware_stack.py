"""CORS, metrics, access log and failures around an app, in the order in which they are added."""

import asyncio
from typing import Any

from api.http.middleware.access import CLIENT_GONE
from tests.api.conftest import PNG

ORIGIN = {"Origin": "https://hmi.plant"}
KEY = {"X-API-Key": "api"}


# === CORS ===


def preflight(client: Any, header: str, origin: dict[str, str] = ORIGIN, method: str = "POST") -> Any:
    asked = {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": header}
    return client.request("OPTIONS", "/v1/predict", headers={**origin, **asked})


def test_preflight_needs_no_key(serve, make_app, key_files):
    with serve(make_app(**key_files, cors_origins=("https://hmi.plant",))) as client:
        for method, header in (("POST", "x-api-key"), ("POST", "idempotency-key"), ("DELETE", "if-match")):
            answer = preflight(client, header, method=method)
            assert answer.status_code == 200
            assert answer.headers["Access-Control-Allow-Origin"] == "https://hmi.plant"
        assert preflight(client, "x-api-key", method="PATCH").status_code == 400
        assert preflight(client, "x-other").status_code == 400
        assert preflight(client, "x-api-key", {"Origin": "https://elsewhere"}).status_code == 400


def test_other_origins_are_off_by_default(client):
    assert "Access-Control-Allow-Origin" not in client.get("/livez", headers=ORIGIN).headers


def test_browser_can_read_answers_and_rejections(serve, make_app, key_files):
    with serve(make_app(**key_files, cors_origins=("https://hmi.plant",))) as client:
        for headers, status in ((ORIGIN, 401), ({**ORIGIN, **KEY}, 200)):
            answer = client.get("/v1/models", headers=headers)
            assert answer.status_code == status
            assert answer.headers["Access-Control-Allow-Origin"] == "https://hmi.plant"
            exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
            assert {"X-Request-ID", "X-Request-ID-Refused", "Retry-After", "X-Segdec-Label"} <= set(exposed)
            assert {"ETag", "X-Segdec-Record", "X-Segdec-Repeated"} <= set(exposed)


# === Metrics ===


def test_requests_are_counted_by_template(client):
    paths = ("/v1/models/a", "/v1/models/b", "/x", "/y", "/livez", "/", "/static/inspect/inspect.js")
    for path in (*paths, "/static/inspect/no", "/v1/predict"):
        client.get(path)
    lines = client.get("/metrics").text.splitlines()
    counted = [line for line in lines if line.startswith("segdec_requests_total")]
    assert sorted(counted) == [
        'segdec_requests_total{code="200",method="GET",route="/"} 1.0',
        'segdec_requests_total{code="200",method="GET",route="/livez"} 1.0',
        'segdec_requests_total{code="200",method="GET",route="/static/inspect/{path}"} 1.0',
        'segdec_requests_total{code="404",method="GET",route="/static/inspect/{path}"} 1.0',
        'segdec_requests_total{code="404",method="GET",route="/v1/models/{name}"} 2.0',
        'segdec_requests_total{code="404",method="GET",route="unmatched"} 2.0',
        'segdec_requests_total{code="405",method="GET",route="/v1/predict"} 1.0',
    ]


def test_metrics_come_as_prometheus_reads_them(client):
    answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert "segdec_ready 1.0" in answer.text.splitlines()


def test_disconnected_client_is_counted(client):
    async def leave() -> None:
        async def receive() -> Any:
            await asyncio.Event().wait()

        headers = [(b"content-type", b"image/png")]
        scope = {"type": "http", "method": "POST", "path": "/v1/predict"}
        scope |= {"headers": headers, "query_string": b""}
        request = asyncio.create_task(client.app(scope, receive, receive))
        await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait([request])

    client.run(leave)
    counted = f'segdec_requests_total{{code="{CLIENT_GONE}",method="POST",route="/v1/predict"}} 1.0'
    assert counted in client.get("/metrics").text


# === Access log ===


def test_log_has_caller_request_and_answer(serve, make_app, key_files, logged, part):
    with serve(make_app()) as client:
        client.post("/v1/predict", content=part, headers=PNG)
    assert logged() == []  # it is off by default
    with serve(make_app(**key_files, access_log=True)) as client:
        headers = {**PNG, **KEY, "X-Request-ID": "r-1"}
        client.post("/v1/predict?threshold=0.5", content=part, headers=headers)
        client.post("/v1/predict", headers={"X-Request-ID": "r-2"})
    facts = {"label": "scratch", "score": 0.8}
    asked = {"client": "127.0.0.1", "method": "POST", "path": "/v1/predict"}
    assert logged() == [
        {"request_id": "r-1", **asked, "status": 200, "key": "api", **facts},
        {"request_id": "r-2", **asked, "status": 401, "problem": "missing_key"},
    ]


def test_health_and_metrics_are_logged_when_they_fail(serve, make_app, logged):
    with serve(make_app(access_log=True)) as client:
        client.app.state.service.drain()
        for path in ("/livez", "/metrics", "/readyz"):
            client.get(path)
    assert [(line["path"], line["status"]) for line in logged()] == [("/readyz", 503)]


def test_failure_is_logged_with_its_traceback_and_id(client, predictor, part, logged, caplog):
    predictor.failure = RuntimeError("secret internals")
    answer = client.post("/v1/predict", content=part, headers={**PNG, "X-Request-ID": "r-1"})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    failure = next(record for record in caplog.records if record.exc_info)
    assert (failure.request_id, str(failure.exc_info[1])) == ("r-1", "secret internals")
    assert [(line["request_id"], line["status"]) for line in logged()] == [("r-1", 500)]
