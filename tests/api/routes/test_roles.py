"""Every route needs a key of its role, unless it is listed here as public."""

from typing import Any, NoReturn

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from api.routes.roles import check_roles, role_of
from segdec.errors import ConfigError

PUBLIC = {"/livez", "/readyz", "/metrics", "/openapi.json", "/v2", "/v2/health/live", "/v2/health/ready"}
PAGES = {"/", "/review", "/line", "/parts", "/trends", "/models", "/changes", "/docs"}
PART = "/parts/{record_id}"
FOLDERS = ("shared", "inspect", "review", "line", "parts", "part", "trends", "models", "changes", "vendor")
FILES = {"/docs", "/docs/swagger", *(f"/static/{name}" for name in FOLDERS)}
REVIEW = ("/v1/records", "/v1/review", "/v1/line", "/v1/trends", "/v1/reports", "/v1/audit", "/v1/outbox")
CODES = {"anyone": 200, "predict": "missing_key", "review": "not_review", "admin": "not_admin"}
BOSS = {"Authorization": "Bearer admin"}


@pytest.fixture
def guarded(make_app, key_files, tmp_path):
    return make_app(record="required", record_folder=tmp_path / "record", **key_files)


def expected_role(path: str) -> str:
    if path in PUBLIC:
        return "anyone"
    if path.startswith("/v1/admin/"):
        return "admin"
    return "review" if path.startswith(REVIEW) else "predict"


def test_every_route_requires_its_role(guarded, serve):
    routes = [route for route in guarded.routes if isinstance(route, APIRoute)]
    assert {route.path for route in guarded.routes} - {route.path for route in routes} == (
        {"/openapi.json", PART} | PAGES | FILES
    )
    assert {(route.path, role_of(route)) for route in routes} == {
        (route.path, expected_role(route.path)) for route in routes
    }
    lower = {"predict": None, "review": "api", "admin": "review"}
    with serve(guarded) as client:
        for route in routes:
            role = expected_role(route.path)
            key = lower.get(role)
            headers = {"X-API-Key": key} if key else {}
            for method in route.methods:
                answer = client.request(method, route.path, headers=headers)
                found = answer.status_code if role == "anyone" else answer.json()["code"]
                assert found == CODES[role], route.path


def test_public_paths_and_unknown_ones(guarded, serve):
    with serve(guarded) as client:
        public = sorted(PUBLIC | PAGES | {"/parts/7", "/static/inspect/inspect.js"})
        assert {client.get(path).status_code for path in public} == {200}
        hidden = ("/v1/nothing", "/v1/predict", "/nothing", "/v1/predict/", "/v1/admin/nothing")
        assert {client.get(path).status_code for path in hidden} == {401}
        assert client.get("/v1/nothing", headers=BOSS).status_code == 404
        assert client.get("/v1/predict", headers=BOSS).status_code == 405
        assert client.get("/static/inspect/nothing.js").status_code == 404


def test_route_without_a_role_is_refused(guarded):
    router = APIRouter()
    router.add_api_route("/v1/new", lambda: "new")
    guarded.routes.extend(router.routes)
    with pytest.raises(ConfigError, match="/v1/new declares no role"):
        check_roles(guarded)


@pytest.mark.anyio
async def test_body_of_a_request_without_a_key_is_not_read(guarded):
    answers = []

    async def receive() -> NoReturn:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"content-length", b"1000000"), (b"x-api-key", b"wrong")]
    scope = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": headers, "query_string": b""}
    await guarded(scope, receive, send)
    assert answers[0]["status"] == 401


def test_openapi_document_says_which_paths_need_a_key(guarded, make_app):
    either = [{"bearer": []}, {"api_key": []}]
    document = guarded.openapi()
    assert set(document["components"]["securitySchemes"]) == {"bearer", "api_key"}
    assert document["paths"]["/v1/predict"]["post"]["security"] == either
    assert "security" not in document["paths"]["/livez"]["get"]
    paths = make_app().openapi()["paths"]
    assert "security" not in paths["/v1/predict"]["post"]
    assert paths["/v1/admin/models/{name}/reload"]["post"]["security"] == either


def test_each_key_has_its_own_rate_limit(make_app, key_files, serve):
    with serve(make_app(**key_files, rate_limit=0.001, rate_burst=2)) as client:
        assert [client.get("/v1/models", headers=BOSS).status_code for _ in range(3)] == [200, 200, 429]
        assert client.get("/v1/models", headers={"X-API-Key": "api"}).status_code == 200
        rejected = client.get("/v1/models/unnamed", headers=BOSS)
        assert 1 <= int(rejected.headers["Retry-After"]) <= 1000
        assert (rejected.json()["code"], rejected.json()["status"]) == ("rate_limit", 429)
        assert {client.get(path).status_code for path in ("/livez", "/metrics") * 5} == {200}
        assert 'segdec_rejections_total{reason="rate_limit"} 2.0' in client.get("/metrics").text
