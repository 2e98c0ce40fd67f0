"""The report in a model: served without access to the service, and only as it was exported."""

import hashlib
import shutil

import pytest

from api.app import create_app
from api.models import report
from api.settings import Settings
from tests.api.conftest import ServiceClient, problem
from tests.forged_artifact import forge

PAGE = b"<!doctype html><script>location = 'https://example.com'</script>"
ADMIN = {"X-API-Key": "admin"}
PATH = "/v1/models/tiny/versions/1/report"


@pytest.fixture(scope="module")
def folder(tiny_artifact, tmp_path_factory):
    """A model with a report in a folder of models; its version 2 has none."""
    models = tmp_path_factory.mktemp("models") / "tiny"
    for version in ("1", "2"):
        shutil.copytree(tiny_artifact, models / version)
    (models / "1" / "report.html").write_bytes(PAGE)
    for version in ("1", "2"):
        forge(models / version, version=version)
    (models / "aliases.json").write_text('{"stable": "1", "canary": "2"}')
    return models / "1"


@pytest.fixture(scope="module")
def client(folder, tmp_path_factory):
    keys = tmp_path_factory.mktemp("keys") / "admin.keys"
    keys.write_text(f"admin:{hashlib.sha256(b'admin').hexdigest()}")
    settings = Settings(models=folder.parents[1], batch_sizes=(1,), admin_keys=keys)
    with ServiceClient(create_app(settings)) as client:
        yield client


def test_a_report_cannot_reach_the_service(client):
    answer = client.get(PATH, headers=ADMIN)
    assert (answer.status_code, answer.content) == (200, PAGE)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(
        rule.strip().partition(" ")[::2] for rule in answer.headers["Content-Security-Policy"].split(";")
    )
    assert policy["sandbox"] == "allow-scripts"  # without allow-same-origin it has an origin of its own
    assert policy["default-src"] == policy["form-action"] == policy["base-uri"] == "'none'"
    assert "connect-src" not in policy and policy["img-src"] == "data:"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert client.get("/v1/models/tiny/versions/stable/report", headers=ADMIN).content == PAGE


def test_thresholds_that_were_set_do_not_hide_it(client):
    body = {"version": "1", "score": 0.3, "review": None}
    assert client.post("/v1/admin/models/tiny/thresholds", headers=ADMIN, json=body).status_code == 200
    assert client.get(PATH, headers=ADMIN).content == PAGE


def test_a_report_that_changed_is_not_shown(client, folder, monkeypatch):
    (folder / "report.html").write_bytes(PAGE + b" ")
    assert problem(client.get(PATH, headers=ADMIN)) == (404, "report_changed")
    (folder / "report.html").unlink()
    assert problem(client.get(PATH, headers=ADMIN)) == (404, "report_changed")
    (folder / "report.html").symlink_to("/etc/passwd")
    assert problem(client.get(PATH, headers=ADMIN)) == (404, "report_changed")
    (folder / "report.html").unlink()
    (folder / "report.html").write_bytes(PAGE)
    monkeypatch.setattr(report, "MAX_REPORT_BYTES", len(PAGE) - 1)
    assert problem(client.get(PATH, headers=ADMIN)) == (404, "report_changed")


def test_other_models_have_no_report(make_app, serve, client):
    for version, expected in (("9", "version_not_found"), ("2", "no_report")):
        answer = client.get(f"/v1/models/tiny/versions/{version}/report", headers=ADMIN)
        assert problem(answer) == (404, expected)
    assert problem(client.get("/v1/models/../versions/1/report", headers=ADMIN))[0] == 404
    with serve(make_app()) as in_memory:
        assert problem(in_memory.get("/v1/models/unnamed/versions/0/report")) == (404, "no_report")
