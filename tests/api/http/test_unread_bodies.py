"""Requests whose role, path or query is wrong are refused before their body is read."""

import hashlib
import json
import re
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute

from api.http.json_body import JsonBody
from tests.api.data_sets.conftest import SETS
from tests.api.engineer_client import KEY, EngineerClient

LENGTH = 1000
WORKER_KEY = "of-a-worker"


@pytest.fixture(scope="module")
def engineer(tmp_path_factory):
    """A service with the data set 1."""
    folder = tmp_path_factory.mktemp("service")
    keys = folder / "train.keys"
    keys.write_text(f"gpu:{hashlib.sha256(WORKER_KEY.encode()).hexdigest()}")
    with EngineerClient(folder / "record", train_keys=keys) as client:
        assert client.post(SETS, json={"name": "Brackets", "classes": []}).json()["id"] == 1
        yield client


def send_head(client, method, url, kind="application/json", key=None):
    """Sends a request of which only the head arrives; returns status and code of the answer."""
    path, query = urlsplit(url)[2:4]
    key = key or (WORKER_KEY if "/worker/" in url else KEY)
    headers = {"host": "test", "content-type": kind, "content-length": str(LENGTH)}
    headers |= {"x-api-key": key, "x-lease": "0" * 32}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("test", 80),
    }
    answer = []

    async def receive():
        raise AssertionError("The body is read.")

    async def send(message):
        answer.append(message)

    client.run(lambda: client.app(scope, receive, send))
    return answer[0]["status"], json.loads(answer[1]["body"])["code"]


def reads_json(dependant):
    return isinstance(dependant.call, JsonBody) or any(map(reads_json, dependant.dependencies))


def test_every_route_with_json_checks_the_number_in_its_path_first(engineer):
    checked = {}
    for route in engineer.app.routes:
        if isinstance(route, APIRoute) and "_id}" in route.path and reads_json(route.dependant):
            path = re.sub(r"\{\w+\}", "none", route.path)
            for method in route.methods:
                checked[path] = send_head(engineer, method, path)
    assert set(checked.values()) == {(400, "bad_parameter")}
    assert len(checked) > 10


@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        ("PUT", f"{SETS}/1/photographs/9/annotation", (404, "photograph_not_found")),
        ("PUT", f"{SETS}/9/photographs/9/annotation", (404, "data_set_not_found")),
        ("PUT", "/v1/records/9/review", (404, "record_not_found")),
        ("PUT", f"/v1/training/worker/jobs/9/chunks/{'0' * 64}", (404, "job_not_found")),
        ("PUT", "/v1/training/worker/jobs/9/panel", (404, "job_not_found")),
        ("POST", f"{SETS}/9/photographs", (404, "data_set_not_found")),
        ("POST", f"{SETS}/1/photographs?split=none", (400, "bad_parameter")),
        ("POST", f"{SETS}/9/archives", (404, "data_set_not_found")),
        ("POST", f"{SETS}/1/archives?labels=all", (400, "bad_parameter")),
        ("POST", "/v1/models/unknown/predict", (404, "model_not_found")),
        ("POST", "/v1/predict?threshold=2", (400, "bad_parameter")),
        ("POST", "/v1/inspect?threshold=2", (400, "bad_parameter")),
        ("POST", "/v1/predict/batch?threshold=2", (400, "bad_parameter")),
        ("POST", "/v2/models/unknown/infer", (404, "model_not_found")),
    ],
)
def test_large_bodies_are_not_read_for_nothing(engineer, method, url, expected):
    kind = "application/zip" if "archives" in url else "application/json"
    assert send_head(engineer, method, url, kind) == expected


@pytest.mark.parametrize("rest", ["photographs", "archives"])
def test_a_key_is_checked_first(engineer, rest):
    assert send_head(engineer, "POST", f"{SETS}/1/{rest}", key="other") == (401, "unknown_key")
