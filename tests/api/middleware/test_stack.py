"""Keys, rate limit, CORS, metrics and access log around a small app, in the order in which they are put."""

import asyncio
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.staticfiles import StaticFiles

from api.errors import RequestError, add_error_handlers
from api.metrics import Metrics
from api.middleware.access import CLIENT_GONE, add_log_fields
from api.middleware.stack import add_middleware
from api.routes import metrics
from api.settings import Settings
from segdec.errors import ConfigError

ORIGIN = {"Origin": "https://hmi.plant"}
BOSS = {"Authorization": "Bearer three"}
router = APIRouter(prefix="/v1")


@router.post("/predict")
async def predict(request: Request) -> str:
    await request.body()
    add_log_fields(request, model="castings", version="1", label="good", score=0.25)
    return "good"


@router.get("/models/{name}")
async def get_model(name: str) -> str:
    return name


@router.post("/admin/models/{name}/reload")
async def reload(name: str) -> str:
    return name


@router.get("/broken")
async def broken() -> str:
    raise RuntimeError("secret internals")


async def ready() -> str:
    raise RequestError(503, "not_ready", "Not yet.")


class NoModels:
    """Stands where the service with its models would."""

    state = "ready"

    async def start(self) -> None:
        """There is nothing to load."""


def make_app(folder: Path, **words: object) -> FastAPI:
    settings = Settings.model_validate({"model": "unused", **words})
    app = FastAPI(docs_url=None, redoc_url=None)
    app.state.service = NoModels()
    add_error_handlers(app)
    app.include_router(router)
    app.include_router(metrics.router)
    app.add_api_route("/livez", lambda: "alive")
    app.add_api_route("/readyz", ready)
    app.mount("/static", StaticFiles(directory=folder))
    add_middleware(app, settings, Metrics(lambda: 0, lambda: True))
    return app


@pytest.fixture
def key_files(tmp_path) -> dict[str, Path]:
    """Keys `one` and `two` that may predict, and `three` that may do everything."""
    files = {"api_keys": [("line-1", "one"), ("line-2", "two")], "admin_keys": [("boss", "three")]}
    for file, keys in files.items():
        lines = (f"{name}:{hashlib.sha256(secret.encode()).hexdigest()}" for name, secret in keys)
        (tmp_path / file).write_text("\n".join(lines))
    return {file: tmp_path / file for file in files}


@pytest.fixture
def start(serve, tmp_path):
    """Starts an app with the given settings; stopped by the block that takes it."""
    return lambda **words: serve(make_app(tmp_path, **words))


def series(client: Any) -> list[str]:
    return client.get("/metrics").text.splitlines()


# === Keys ===


def test_key_opens_what_it_is_for(start, key_files):
    with start(**key_files) as client:
        one = {"X-API-Key": "one"}
        assert client.post("/v1/predict", headers=one).json() == "good"
        assert client.post("/v1/admin/models/a/reload", headers=BOSS).json() == "a"
        refused = client.post("/v1/admin/models/a/reload", headers=one)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_admin")


def test_refusal_is_a_problem_that_says_how_to_send_a_key(start, key_files):
    with start(**key_files) as client:
        refused = client.post("/v1/predict", headers={"X-Request-ID": "r-1"})
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert (refused.json()["code"], refused.json()["request_id"]) == ("missing_key", "r-1")
    assert "X-API-Key" in refused.json()["detail"]


def test_paths_are_not_told_to_strangers(start, key_files):
    with start(**key_files) as client:
        statuses = [
            client.get(path).status_code
            for path in ("/v1/nothing", "/v1/predict", "/nothing", "/v1/predict/")
        ]
        assert statuses == [401] * 4
        assert client.get("/v1/nothing", headers=BOSS).status_code == 404


def test_health_metrics_and_pages_need_no_key(start, key_files, tmp_path):
    (tmp_path / "page.js").write_text("1")
    with start(**key_files) as client:
        paths = ("/livez", "/metrics", "/openapi.json", "/static/page.js")
        assert [client.get(path).status_code for path in paths] == [200] * 4


def test_without_files_everyone_predicts_and_nobody_reloads(start):
    with start() as client:
        assert client.post("/v1/predict").status_code == 200
        refused = client.post("/v1/admin/models/a/reload", headers=BOSS)
        assert (refused.status_code, refused.json()["code"]) == (403, "admin_off")


def test_stranger_is_refused_before_the_body_is_read(key_files, tmp_path):
    answers = []

    async def receive() -> NoReturn:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"content-length", b"1000000"), (b"x-api-key", b"wrong")]
    scope = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": headers, "query_string": b""}
    asyncio.run(make_app(tmp_path, **key_files)(scope, receive, send))
    assert answers[0]["status"] == 401


def test_unusable_key_file_ends_the_start(tmp_path):
    with pytest.raises(ConfigError, match="absent"):
        make_app(tmp_path, api_keys=tmp_path / "absent")


def test_description_says_which_paths_need_a_key(start, key_files):
    with start(**key_files) as client:
        guarded = client.get("/openapi.json").json()
    with start() as client:
        free = client.get("/openapi.json").json()
    assert set(guarded["components"]["securitySchemes"]) == {"bearer", "api_key"}
    either = [{"bearer": []}, {"api_key": []}]
    assert guarded["paths"]["/v1/predict"]["post"]["security"] == either
    assert "security" not in guarded["paths"]["/livez"]["get"]
    assert "security" not in free["paths"]["/v1/predict"]["post"]
    assert free["paths"]["/v1/admin/models/{name}/reload"]["post"]["security"] == either


# === Rate limit ===


def test_each_key_has_its_own_limit(start, key_files):
    with start(**key_files, rate_limit=0.001, rate_burst=2) as client:
        one, two = {"X-API-Key": "one"}, {"X-API-Key": "two"}
        assert [client.post("/v1/predict", headers=one).status_code for _ in range(3)] == [200, 200, 429]
        assert client.post("/v1/predict", headers=two).status_code == 200
        refused = client.get("/v1/models/a", headers=one)
        assert 1 <= int(refused.headers["Retry-After"]) <= 1000
        assert (refused.json()["code"], refused.json()["status"]) == ("rate_limit", 429)
        assert 'segdec_rejections_total{reason="rate_limit"} 2.0' in series(client)


def test_health_and_metrics_are_never_limited(start):
    with start(rate_limit=0.001, rate_burst=1) as client:
        assert [client.post("/v1/predict").status_code for _ in range(2)] == [200, 429]
        assert {client.get(path).status_code for path in ("/livez", "/metrics") * 5} == {200}


# === CORS ===


def preflight(client: Any, header: str, origin: dict[str, str] = ORIGIN, method: str = "POST") -> Any:
    asked = {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": header}
    return client.request("OPTIONS", "/v1/predict", headers={**origin, **asked})


def test_other_origins_are_off_by_default(start):
    with start() as client:
        assert "Access-Control-Allow-Origin" not in client.get("/livez", headers=ORIGIN).headers


def test_preflight_needs_no_key(start, key_files):
    with start(**key_files, cors_origins=("https://hmi.plant",)) as client:
        for header in ("content-type", "authorization", "x-api-key", "x-request-id", "x-deadline-ms"):
            answer = preflight(client, header)
            assert answer.status_code == 200
            assert answer.headers["Access-Control-Allow-Origin"] == "https://hmi.plant"
        for method, header in (("POST", "idempotency-key"), ("PUT", "if-match"), ("DELETE", "if-match")):
            assert preflight(client, header, method=method).status_code == 200
        assert preflight(client, "x-api-key", method="PATCH").status_code == 400
        assert preflight(client, "x-other").status_code == 400
        assert preflight(client, "x-api-key", {"Origin": "https://elsewhere"}).status_code == 400


def test_browser_may_read_answers_and_refusals(start, key_files):
    with start(**key_files, cors_origins=("https://hmi.plant",)) as client:
        for headers, status in ((ORIGIN, 401), ({**ORIGIN, **BOSS}, 200)):
            answer = client.post("/v1/predict", headers=headers)
            assert answer.status_code == status
            assert answer.headers["Access-Control-Allow-Origin"] == "https://hmi.plant"
            exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
            assert {"X-Request-ID", "Retry-After", "X-Segdec-Label", "X-Segdec-Score"} <= set(exposed)
            assert {"ETag", "X-Segdec-Record", "X-Segdec-Repeated"} <= set(exposed)


def test_any_origin_comes_without_credentials(start):
    with start(cors_origins=("*",)) as client:
        answer = client.post("/v1/predict", headers=ORIGIN)
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert preflight(client, "x-api-key").headers["Access-Control-Allow-Origin"] == "*"


# === Metrics ===


def test_requests_are_counted_by_template(start, tmp_path):
    (tmp_path / "page.js").write_text("1")
    with start() as client:
        for path in ("/v1/models/a", "/v1/models/b", "/x", "/y", "/livez", "/static/page.js", "/static/no"):
            client.get(path)
        client.get("/v1/predict")
        counted = [line for line in series(client) if line.startswith("segdec_requests_total")]
    assert sorted(counted) == [
        'segdec_requests_total{code="200",method="GET",route="/livez"} 1.0',
        'segdec_requests_total{code="200",method="GET",route="/static/{path}"} 1.0',
        'segdec_requests_total{code="200",method="GET",route="/v1/models/{name}"} 2.0',
        'segdec_requests_total{code="404",method="GET",route="/static/{path}"} 1.0',
        'segdec_requests_total{code="404",method="GET",route="unmatched"} 2.0',
        'segdec_requests_total{code="405",method="GET",route="/v1/predict"} 1.0',
    ]


def test_metrics_come_as_prometheus_reads_them(start):
    with start() as client:
        answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert "segdec_ready 1.0" in answer.text.splitlines()


def test_failure_and_disconnected_client_are_counted(start):
    async def leave() -> None:
        async def receive() -> Any:
            await asyncio.Event().wait()

        scope = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": [], "query_string": b""}
        request = asyncio.create_task(app(scope, receive, receive))
        await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait([request])

    with start() as client:
        app = client.app
        assert client.get("/v1/broken").status_code == 500
        asyncio.run(leave())
        lines = series(client)
    assert 'segdec_requests_total{code="500",method="GET",route="/v1/broken"} 1.0' in lines
    assert f'segdec_requests_total{{code="{CLIENT_GONE}",method="POST",route="/v1/predict"}} 1.0' in lines


# === Access log ===


@pytest.fixture
def logged(caplog) -> Callable[[], list[dict[str, Any]]]:
    """The access log's lines, as their fields."""
    caplog.set_level(logging.INFO, logger="api")
    names = ("request_id", "method", "path", "status", "key", "model", "version", "label", "score")

    def read() -> list[dict[str, Any]]:
        records = [record for record in caplog.records if record.name == "api.middleware.access"]
        assert all(record.duration_ms >= 0 for record in records)
        return [{name: vars(record)[name] for name in names if name in vars(record)} for record in records]

    return read


def test_log_tells_who_asked_what_and_was_told_what(start, key_files, logged):
    with start(**key_files, access_log=True) as client:
        client.post("/v1/predict?threshold=0.5", headers={"X-API-Key": "one", "X-Request-ID": "r-1"})
        client.post("/v1/predict", headers={"X-Request-ID": "r-2"})
    facts = {"model": "castings", "version": "1", "label": "good", "score": 0.25}
    asked = {"method": "POST", "path": "/v1/predict"}
    assert logged() == [
        {"request_id": "r-1", **asked, "status": 200, "key": "line-1", **facts},
        {"request_id": "r-2", **asked, "status": 401},
    ]


def test_health_and_metrics_are_logged_when_they_fail(start, logged):
    with start(access_log=True) as client:
        for path in ("/livez", "/metrics", "/readyz"):
            client.get(path)
    assert [(line["path"], line["status"]) for line in logged()] == [("/readyz", 503)]


def test_failure_is_logged_with_its_traceback_and_id(start, logged, caplog):
    with start(access_log=True) as client:
        client.get("/v1/broken", headers={"X-Request-ID": "r-1"})
    failure = next(record for record in caplog.records if record.exc_info)
    assert (failure.request_id, str(failure.exc_info[1])) == ("r-1", "secret internals")
    assert [(line["request_id"], line["status"]) for line in logged()] == [("r-1", 500)]


def test_access_log_is_off_by_default(start, logged):
    with start() as client:
        client.post("/v1/predict")
    assert logged() == []
