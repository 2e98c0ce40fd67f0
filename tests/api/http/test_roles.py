"""The roles of all routes, and who may use them."""

import hashlib
import re
from datetime import UTC, datetime
from functools import partial
from typing import Any, NoReturn

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from api.accounts import sessions, users
from api.http.callers import SAFE_METHODS
from api.http.page_list import RECORD_PAGES
from api.http.roles import check_roles, role_of
from api.page_routes import STATIC
from api.roles import USER_ROLES, Role, includes
from segdec.errors import ConfigError

PAGES = {
    *("/", "/review", "/line", "/parts", "/trends", "/datasets", "/label", "/plan"),
    *("/train", "/models", "/settings", "/changes", "/docs"),
}
PART = "/parts/{record_id}"
FOLDERS = {
    *("shared", "vendor", "languages", "inspect", "part"),
    *(page.strip("/") for page in PAGES - {"/", "/docs"}),
}
FILES = {"/docs", "/docs/swagger", *(f"/static/{name}" for name in FOLDERS)}
NEEDED_ROLE = re.compile(r"""(?:data-needs=|dataset\.needs = |hasRole\(user, )"(\w+)\"""")
PERMISSIONS = """
anyone         GET HEAD        /livez
anyone         GET HEAD        /readyz
anyone         GET             /metrics
anyone         GET             /v2
anyone         GET             /v2/health/live
anyone         GET             /v2/health/ready
anyone         GET POST DELETE /v1/session
anyone         POST            /v1/session/link
anyone         PUT             /v1/session/password
predict        POST            /v1/predict
predict        POST            /v1/predict/batch
predict        POST            /v1/inspect
predict        GET             /v1/models
predict        GET             /v1/models/{name}
predict        POST            /v1/models/{name}/inspect
predict        POST            /v1/models/{name}/predict
predict        POST            /v1/models/{name}/versions/{version}/predict
predict        GET             /v2/models/{name}
predict        GET             /v2/models/{name}/ready
predict        GET             /v2/models/{name}/versions/{version}
predict        GET             /v2/models/{name}/versions/{version}/ready
predict        POST            /v2/models/{name}/infer
predict        POST            /v2/models/{name}/versions/{version}/infer
predict        POST            /v2/repository/index
operator       GET             /v1/line
operator       GET             /v1/models/{name}/versions/{version}/report
operator       GET             /v1/records
operator       GET             /v1/records/names
operator       GET             /v1/records/{record_id}
operator       GET             /v1/records/{record_id}/audit
operator       GET             /v1/records/{record_id}/heat-map
operator       GET             /v1/records/{record_id}/image
operator       GET             /v1/records/{record_id}/mask
operator       GET             /v1/records/{record_id}/messages
operator       GET             /v1/records/{record_id}/overlay
operator       GET             /v1/records/{record_id}/qr-code
operator       GET             /v1/settings
reviewer       GET             /v1/data-sets
reviewer       GET             /v1/data-sets/{data_set_id}
reviewer       GET             /v1/data-sets/{data_set_id}/check
reviewer       GET             /v1/data-sets/{data_set_id}/imports
reviewer       GET             /v1/data-sets/{data_set_id}/imports/{import_id}
reviewer       POST            /v1/data-sets/{data_set_id}/missing
reviewer       DELETE          /v1/data-sets/{data_set_id}/leases
reviewer       POST            /v1/data-sets/{data_set_id}/next
reviewer       GET             /v1/data-sets/{data_set_id}/photographs
reviewer       GET             /v1/data-sets/{data_set_id}/photographs/{photograph_id}
reviewer       PUT             /v1/data-sets/{data_set_id}/photographs/{photograph_id}/annotation
reviewer       GET             /v1/data-sets/{data_set_id}/photographs/{photograph_id}/annotations
reviewer       GET             /v1/data-sets/{data_set_id}/photographs/{photograph_id}/image
reviewer       POST DELETE     /v1/data-sets/{data_set_id}/photographs/{photograph_id}/lease
reviewer       POST            /v1/data-sets/{data_set_id}/photographs/{photograph_id}/segment
reviewer       GET             /v1/data-sets/{data_set_id}/photographs/{photograph_id}/mask
reviewer       GET             /v1/data-sets/{data_set_id}/photographs/{photograph_id}/proposal/mask
reviewer       GET             /v1/data-sets/{data_set_id}/proposals
reviewer       GET             /v1/data-sets/{data_set_id}/proposals/models
reviewer       GET             /v1/data-sets/{data_set_id}/proposals/training
reviewer       GET             /v1/data-sets/{data_set_id}/versions
reviewer       GET             /v1/data-sets/{data_set_id}/versions/compare
reviewer       GET             /v1/data-sets/{data_set_id}/versions/{number}
reviewer       GET             /v1/data-sets/{data_set_id}/versions/{number}/export
reviewer       GET             /v1/data-sets/{data_set_id}/versions/{number}/files/{sha256}
reviewer       GET             /v1/data-sets/{data_set_id}/versions/{number}/manifest
reviewer       POST            /v1/review/next
reviewer       GET             /v1/review/agreement
reviewer       GET             /v1/review/statistics
reviewer       PUT DELETE      /v1/records/{record_id}/review
operator       GET             /v1/models/{name}/plans
operator       GET             /v1/models/{name}/plans/{number}
reviewer       POST            /v1/models/{name}/confirmed
reviewer       GET             /v1/training/jobs
reviewer       GET             /v1/training/jobs/{job_id}
reviewer       GET             /v1/training/jobs/{job_id}/events
reviewer       GET             /v1/training/jobs/{job_id}/panel
reviewer       GET             /v1/training/jobs/{job_id}/report
reviewer       GET             /v1/training/comparison
reviewer       GET             /v1/training/workers
quality        GET             /v1/audit
quality        GET             /v1/outbox
quality        GET             /v1/records/days/{day}
quality        GET             /v1/records/export
quality        GET             /v1/reports/{kind}
quality        GET             /v1/review/candidates
quality        GET             /v1/review/candidates/{name}/differences
quality        GET             /v1/trends
engineer       DELETE          /v1/admin/records/{record_id}/picture
engineer       POST            /v1/admin/models/{name}/candidate
engineer       POST            /v1/admin/models/{name}/promote
engineer       POST            /v1/admin/models/{name}/reload
engineer       POST            /v1/admin/models/{name}/rollback
engineer       POST            /v1/admin/models/{name}/thresholds
engineer       DELETE          /v1/admin/models/{name}/versions/{version}/confirmed/{number}
engineer       POST            /v1/models/{name}/plans
quality        POST            /v1/models/{name}/plans/simulation
engineer       POST            /v1/admin/models/{name}/plan
engineer       POST            /v1/admin/outbox/retry
engineer       POST            /v1/admin/outbox/{event_id}/discard
engineer       POST            /v1/admin/outbox/{event_id}/retry
engineer       POST            /v1/data-sets
engineer       PATCH DELETE    /v1/data-sets/{data_set_id}
engineer       POST            /v1/data-sets/{data_set_id}/archives
engineer       POST            /v1/data-sets/{data_set_id}/imports/{import_id}/answers
engineer       POST            /v1/data-sets/{data_set_id}/check
engineer       POST            /v1/data-sets/{data_set_id}/parts
engineer       POST            /v1/data-sets/{data_set_id}/photographs
engineer       DELETE          /v1/data-sets/{data_set_id}/photographs/{photograph_id}
engineer       POST            /v1/data-sets/{data_set_id}/proposals
engineer       POST            /v1/data-sets/{data_set_id}/proposals/training
engineer       POST            /v1/data-sets/{data_set_id}/versions
engineer       PUT DELETE      /v1/settings/{name}
engineer       POST            /v1/training/jobs
engineer       DELETE          /v1/training/jobs/{job_id}
engineer       POST            /v1/training/jobs/{job_id}/cancel
engineer       POST            /v1/training/jobs/{job_id}/continue
engineer       POST            /v1/training/jobs/{job_id}/stop
engineer       POST            /v1/training/jobs/{job_id}/use
administrator  GET POST        /v1/users
administrator  PUT DELETE      /v1/users/{name}
administrator  POST            /v1/users/{name}/link
train          POST            /v1/training/worker/lease
train          GET             /v1/training/worker/jobs/{job_id}/data/manifest
train          GET             /v1/training/worker/jobs/{job_id}/data/files/{sha256}
train          POST            /v1/training/worker/jobs/{job_id}/chunks/missing
train          GET PUT         /v1/training/worker/jobs/{job_id}/chunks/{sha256}
train          PUT             /v1/training/worker/jobs/{job_id}/checkpoint
train          PUT             /v1/training/worker/jobs/{job_id}/panel
train          PUT             /v1/training/worker/jobs/{job_id}/result
train          POST            /v1/training/worker/jobs/{job_id}/heartbeat
train          POST            /v1/training/worker/jobs/{job_id}/end
"""
TABLE = {
    (method, path): role
    for role, *methods, path in map(str.split, PERMISSIONS.strip().splitlines())
    for method in methods
}
KEYS: dict[str, Role] = {"api": "predict", "review": "quality", "admin": "administrator", "train": "train"}
REFUSALS = {
    *("missing_key", "not_logged_in", "role_too_low"),
    *("not_predict", "not_review", "not_admin", "not_train"),
}
ADMIN = {"Authorization": "Bearer admin"}


@pytest.fixture
def guarded(make_app, key_files, tmp_path):
    train_keys = tmp_path / "train.keys"
    train_keys.write_text(f"train:{hashlib.sha256(b'train').hexdigest()}")
    return make_app(record="required", record_folder=tmp_path / "record", train_keys=train_keys, **key_files)


def test_every_route_is_in_the_table(guarded):
    routes = [route for route in guarded.routes if isinstance(route, APIRoute)]
    assert {route.path for route in guarded.routes} - {route.path for route in routes} == (
        {"/openapi.json", PART} | PAGES | FILES
    )
    assert {(method, route.path): role_of(route) for route in routes for method in route.methods} == TABLE


def add_user(connection, role):
    """Adds a user with this role and name; returns the headers of a session."""
    now = datetime.now(UTC)
    users.add_user(connection, role, role, password="hash", who="test", now=now)
    token = sessions.start_session(connection, role, is_screen=False, now=now).text
    session = sessions.find_session(connection, token, now)
    return {"Cookie": f"segdec_session={token}", "X-CSRF-Token": session.csrf_token}


def test_everyone_may_do_what_the_role_allows(guarded, serve):
    """All callers on one route of each role, and nobody on the other routes."""
    first_of_role = {role: route for route, role in reversed(TABLE.items()) if role != "anyone"}
    with serve(guarded) as client:
        record, callers = guarded.state.service.recording.record, {}
        for role in reversed(USER_ROLES):
            callers[role] = (role, client.run(partial(record.write, add_user, role)))
        callers |= {f"key {key}": (role, {"X-API-Key": key}) for key, role in KEYS.items()}
        callers["nobody"] = ("anyone", {})
        wrong = [
            (name, method, path)
            for needed, (method, path) in first_of_role.items()
            for name, (role, headers) in callers.items()
            if is_refused(client, method, path, headers) != (not includes(role, needed))
        ]
        for (method, path), needed in TABLE.items():
            if needed != "anyone" and not is_refused(client, method, path, {}):
                wrong.append(("nobody", method, path))
    assert not wrong


def is_refused(client, method, path, headers):
    answer = client.request(method, path, headers=headers)
    return answer.status_code in (401, 403) and answer.json()["code"] in REFUSALS


FORMS = {
    "multipart/form-data; boundary=x": b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n",
    "application/x-www-form-urlencoded": b"name=a",
    "text/plain": b'{"name": "administrator", "password": "a", "token": "b", "=": ""}',
}
"""What a form of any web page can send without asking first, by content type."""
FOREIGN_PAGE = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}


@pytest.mark.parametrize(
    ("browser", "codes"), [(FOREIGN_PAGE, {"cross_site"}), ({}, {"csrf", "unsupported_content_type"})]
)
def test_a_form_of_another_site_changes_nothing_with_the_cookie_of_a_session(guarded, serve, browser, codes):
    """Not even in a browser that names no origin."""
    with serve(guarded) as client:
        record = guarded.state.service.recording.record
        cookie = client.run(partial(record.write, add_user, "administrator"))["Cookie"]
        answers = {}
        for method, path in TABLE:
            for kind, body in FORMS.items() if method not in SAFE_METHODS else ():
                headers = {"Cookie": cookie, "Content-Type": kind, **browser}
                target = re.sub(r"{\w+}", "1", path)
                answers[method, path, kind] = client.request(method, target, headers=headers, content=body)
        assert client.get("/v1/audit", headers={"Cookie": cookie}).json()["changes"][1:] == []
    assert len(answers) > 100
    refused = {place: answer.json()["code"] for place, answer in answers.items()}
    assert {place: code for place, code in refused.items() if code not in codes} == {}
    assert not any("set-cookie" in answer.headers for answer in answers.values())


def test_public_paths_and_unknown_ones(guarded, serve):
    guarded.openapi = dict  # to make it takes a second
    with serve(guarded) as client:
        public = sorted(
            {"/openapi.json", "/livez", "/v1/session"} | PAGES | {"/parts/7", "/static/inspect/inspect.js"}
        )
        assert {client.get(path).status_code for path in public} == {200}
        hidden = ("/v1/nothing", "/v1/predict", "/nothing", "/v1/predict/", "/v1/admin/nothing")
        assert {client.get(path).status_code for path in hidden} == {401}
        assert client.get("/v1/nothing", headers=ADMIN).status_code == 404
        assert client.get("/v1/predict", headers=ADMIN).status_code == 405
        assert client.get("/static/inspect/nothing.js").status_code == 404


def test_route_without_a_role_is_refused(guarded):
    router = APIRouter()
    router.add_api_route("/v1/new", lambda: "new")
    guarded.routes.extend(router.routes)
    with pytest.raises(ConfigError, match="/v1/new declares no role"):
        check_roles(guarded)


def test_pages_name_only_known_roles():
    """The controls of an unknown one would be hidden from everybody."""
    named = {page.role for page in RECORD_PAGES if page.role}
    for path in (*STATIC.rglob("*.html"), *STATIC.rglob("*.js")):
        named.update(NEEDED_ROLE.findall(path.read_text("utf-8")))
    assert named == {"reviewer", "quality", "engineer", "administrator"}
    assert named <= set(USER_ROLES)


def test_the_documentation_has_all_roles_in_their_order():
    text = (STATIC.parents[1] / "docs/users.md").read_text("utf-8")
    assert tuple(re.findall(r"^\| (\w+) \| ", text, re.MULTILINE))[1:] == USER_ROLES


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


def test_openapi_document_says_which_paths_need_a_key(make_app, key_files):
    either = [{"bearer": []}, {"api_key": []}]
    document = make_app(**key_files).openapi()
    assert set(document["components"]["securitySchemes"]) == {"bearer", "api_key"}
    assert document["paths"]["/v1/predict"]["post"]["security"] == either
    assert "security" not in document["paths"]["/livez"]["get"]
    paths = make_app().openapi()["paths"]
    assert "security" not in paths["/v1/predict"]["post"]
    assert paths["/v1/admin/models/{name}/reload"]["post"]["security"] == either


def test_each_key_has_its_own_rate_limit(make_app, key_files, serve):
    with serve(make_app(**key_files, rate_limit=0.001, rate_burst=2)) as client:
        assert [client.get("/v1/models", headers=ADMIN).status_code for _ in range(3)] == [200, 200, 429]
        assert client.get("/v1/models", headers={"X-API-Key": "api"}).status_code == 200
        rejected = client.get("/v1/models/unnamed", headers=ADMIN)
        assert 1 <= int(rejected.headers["Retry-After"]) <= 1000
        assert (rejected.json()["code"], rejected.json()["status"]) == ("rate_limit", 429)
        assert {client.get(path).status_code for path in ("/livez", "/metrics") * 5} == {200}
        assert 'segdec_rejections_total{reason="rate_limit"} 2.0' in client.get("/metrics").text
