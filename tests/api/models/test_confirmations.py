"""Photographs that people confirm as usual: they widen the limits of a version."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import numpy as np
import pytest

from api.errors import RequestError
from api.models import confirmations
from api.models.confirmations import Confirm, Withdraw
from api.models.store import ModelFolder
from api.record.initialization import DATABASE
from segdec.artifact import manifest_sha256
from segdec.errors import ArtifactError
from segdec.images import encode_png
from segdec.photograph_check import decode_measures
from segdec.schemas import ModelIdentity
from tests.api.conftest import PNG, know_training, problem
from tests.api.models.conftest import ADMIN, ask
from tests.api.models.stub_models import NAME

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "record"


@pytest.fixture(autouse=True)
def trained(shelf, grey_training):
    """The score is the brightest pixel; photographs of the training have levels of 100 to 119."""
    know_training(shelf.predictors["1"], grey_training)


@pytest.fixture
def start(start, folder):
    return lambda **settings: start(record="required", record_folder=folder, **settings)


def inspect(client, level, part="1"):
    """Returns the answer to a flat grey photograph; a dark one, of levels below 80, has the warning."""
    picture = encode_png(np.full((32, 48, 1), level, np.uint8))
    return client.post(f"/v1/inspect?station=a&part_id={part}", content=picture, headers=PNG).json()


def label(answer):
    return answer["decision"]["label"], any("unlike_training" in warning for warning in answer["warnings"])


def confirm(client, *records, name=NAME, **other):
    path = f"/v1/models/{name}/confirmed"
    return client.post(path, headers=ADMIN, json={"records": records, **other})


def withdraw(client, number, version="1"):
    path = f"/v1/admin/models/{NAME}/versions/{version}/confirmed/{number}"
    return client.request("DELETE", path, headers=ADMIN)


def confirmed(client, version="1"):
    models = client.get("/v1/models").json()["models"]
    return next(model["confirmed"] for model in models if model["version"] == version)


def stored(shelf):
    path = shelf.folder / NAME / "confirmed.json"
    return json.loads(path.read_bytes()) if path.exists() else None


# === Confirming ===


def test_photographs_like_a_confirmed_one_get_no_warning_until_it_is_withdrawn(client, shelf):
    first = inspect(client, 62)
    assert label(first) == ("review", True)
    assert label(inspect(client, 64, "2")) == ("review", True)
    answer = confirm(client, first["record_id"])
    assert answer.status_code == 200, answer.text
    assert answer.json() == confirmed(client)
    assert (answer.json()["revision"], answer.json()["count"]) == (1, 1)
    (entry,) = answer.json()["entries"]
    assert (entry["number"], entry["who"], entry["records"]) == (1, "admin", [1])
    assert label(inspect(client, 64, "3")) == ("good", False)
    assert label(inspect(client, 110, "4")) == ("good", False)
    assert label(inspect(client, 50, "5")) == ("review", True)
    assert withdraw(client, 1).json() == {"revision": 2, "count": 0, "entries": []}
    assert label(inspect(client, 64, "6")) == ("review", True)
    assert shelf.loaded == ["1"]


def test_the_manifest_stays_and_the_file_has_the_measures(client, shelf):
    before = client.get("/v1/models").json()["models"][0]["manifest"]
    inspect(client, 62)
    confirm(client, 1)
    assert client.get("/v1/models").json()["models"][0]["manifest"] == before
    of_version = stored(shelf)["1"]
    assert of_version["sha256"] == manifest_sha256(shelf.folder / NAME / "1")
    measures = decode_measures(of_version["entries"][0]["photographs"]["1"])
    assert set(measures) == {"brightness"}
    assert measures["brightness"] == pytest.approx([np.log(63 / (256 - 62)), 0], rel=1e-3)


def test_confirming_again_changes_nothing(client):
    for level in (60, 62):
        inspect(client, level, str(level))
    first = confirm(client, 1, 1).json()
    assert confirm(client, 1).json() == first
    second = confirm(client, 2, 1).json()
    assert [entry["records"] for entry in second["entries"]] == [[1], [2]]
    assert [entry["number"] for entry in second["entries"]] == [1, 2]
    assert withdraw(client, 1).json()["entries"] == second["entries"][1:]
    assert problem(withdraw(client, 1)) == (404, "confirmation_not_found")
    assert confirm(client, 1).json()["revision"] == 4


def test_confirmations_survive_reload_and_restart_without_the_photograph(start):
    with start() as client:
        inspect(client, 62)
        confirm(client, 1)
        ask(client, "reload")
        assert label(inspect(client, 64, "2")) == ("good", False)
        deleted = client.request("DELETE", "/v1/admin/records/1/picture", headers=ADMIN)
        assert deleted.status_code == 200, deleted.text
        withdraw(client, 1)
        assert confirm(client, 1).json()["count"] == 1
    with start() as client:
        assert label(inspect(client, 64, "3")) == ("good", False)
        assert confirmed(client)["revision"] == 3


def test_another_model_of_the_same_version_has_its_own_limits(client, shelf, caplog):
    inspect(client, 62)
    confirm(client, 1)
    (shelf.folder / NAME / "1" / "manifest.json").write_text('{"version": "1", "trained": "again"}')
    assert problem(confirm(client, 1)) == (409, "model_changed")
    ask(client, "reload")
    assert "confirmed photographs were set for another model of this version" in caplog.text
    assert confirmed(client) is None
    assert label(inspect(client, 64, "2")) == ("review", True)
    assert problem(confirm(client, 1)) == (409, "other_model")
    assert confirm(client, 2).json()["revision"] == 1


@pytest.mark.parametrize(
    "make", [lambda model: Confirm(model, {1: {}}, "", NOW), lambda model: Withdraw(model, 1)]
)
def test_a_change_that_waited_for_a_reload_concerns_no_other_model_of_the_version(shelf, make):
    """Its measures, or its number, are those of the model before."""
    now = ModelIdentity(name=NAME, version="1", sha256=manifest_sha256(shelf.folder / NAME / "1"))
    change = make(now.model_copy(update={"sha256": "a" * 64}))
    with pytest.raises(RequestError) as caught:
        ModelFolder(shelf.folder).change_confirmations(now, "1", change)
    assert (caught.value.status, caught.value.code) == (409, "model_changed")


def test_thresholds_and_confirmed_photographs_are_independent(client):
    inspect(client, 62)
    confirm(client, 1)
    body = {"version": "1", "score": 0.2, "review": None}
    ask(client, "thresholds", body)
    assert label(inspect(client, 64, "2")) == ("scratch", False)
    ask(client, "thresholds", {**body, "score": None})
    assert label(inspect(client, 64, "3")) == ("good", False)
    assert confirmed(client)["count"] == 1


def test_the_record_says_what_can_be_confirmed(client, folder):
    inspect(client, 62)
    inspect(client, 110, "2")
    found = [
        client.get(f"/v1/records/{number}", headers=ADMIN).json()["unlike_training"] for number in (1, 2)
    ]
    assert found == [True, False]
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        texts = [text for (text,) in database.execute("SELECT unlike FROM inspections ORDER BY id")]
    assert list(json.loads(texts[0])) == ["brightness"] and texts[1] is None


def test_the_line_reports_many_unlike_photographs_until_some_are_confirmed(client):
    def reports():
        inspect(client, 110, "usual")  # screens share an answer until something is recorded
        return client.get("/v1/line", headers=ADMIN).json()["unlike"]

    for level in range(60, 66):
        inspect(client, level, str(level))
    (report,) = client.get("/v1/line", headers=ADMIN).json()["unlike"]
    assert (report["station"], report["unlike"], report["photographs"]) == ("a", 6, 6)
    assert report["reason"].startswith("unlike_training: ")
    confirm(client, report["records"][-1])
    assert reports() == []
    withdraw(client, 1)
    assert len(reports()) == 1


def test_each_change_is_in_the_audit_log(client):
    inspect(client, 62)
    confirm(client, 1)
    confirm(client, 1)
    withdraw(client, 1)
    changes = client.get("/v1/audit?about=models", headers=ADMIN).json()["changes"]
    assert [(change["what"], change["who"]) for change in changes] == [
        ("withdraw", "admin"),
        ("confirm", "admin"),
    ]
    of = {"model": NAME, "version": "1"}
    assert changes[1]["before"] == {**of, "revision": 0, "records": []}
    assert changes[1]["after"] == changes[0]["before"] == {**of, "revision": 1, "records": [1]}
    assert changes[0]["after"] == {**of, "revision": 2, "records": []}


# === Refusals ===


def test_other_records_cannot_be_confirmed(client, shelf, grey_training):
    inspect(client, 110)
    assert problem(confirm(client, 1)) == (409, "not_warned")
    assert problem(confirm(client, 7)) == (404, "record_not_found")
    inspect(client, 62, "2")
    know_training(shelf.put("2"), grey_training)
    ask(client, "candidate", {"version": "2"})
    ask(client, "promote")
    answer = confirm(client, 2)
    assert problem(answer) == (409, "other_model")
    assert "parts 1. Now parts 2 answers" in answer.json()["detail"]
    assert stored(shelf) is None


def test_a_photograph_that_certainly_shows_something_else_cannot_be_confirmed(start):
    with start(unlike_training="warn") as client:
        assert label(inspect(client, 0)) == ("review", True)
        assert problem(confirm(client, 1)) == (409, "not_warned")
    with start() as client:
        assert inspect(client, 0, "2")["code"] == "unlike_training"
        assert problem(confirm(client, 2)) == (409, "not_warned")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"records": []},
        {"records": [0]},
        {"records": ["1"]},
        {"records": list(range(1, 52))},
        {"records": 1},
    ],
)
def test_damaged_bodies_are_refused(client, body):
    answer = client.post(f"/v1/models/{NAME}/confirmed", headers=ADMIN, json=body)
    assert problem(answer) == (400, "bad_json")


def test_too_many_photographs_need_another_training(client, monkeypatch):
    monkeypatch.setattr(confirmations, "MAX_CONFIRMED", 2)
    for level in (60, 61, 62):
        inspect(client, level, str(level))
    assert confirm(client, 1, 2).status_code == 200
    answer = confirm(client, 1, 3)
    assert problem(answer) == (409, "too_many_confirmed")
    assert "train another one" in answer.json()["detail"]
    assert confirm(client, 2).json()["count"] == 2


def confirmations_file(numbers):
    """The file with a confirmation for each record id, which has the number that `numbers` gives."""
    entry = {"who": "", "at": "2026-01-01T00:00:00Z"}
    entries = [
        {**entry, "number": number, "photographs": {record: {"brightness": "AAAAAA=="}}}
        for record, number in numbers.items()
    ]
    return json.dumps({"1": {"sha256": "a" * 64, "entries": entries}}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b'{"1": {}}',
        b'{"1": {"sha256": "%s", "revision": -1}}' % (b"a" * 64),
        b'{"1": {"sha256": "%s", "entries": [{"number": 1, "who": "", "at": "2026-01-01T00:00:00Z", '
        b'"photographs": {"1": {"brightness": "?"}}}]}}' % (b"a" * 64),
        confirmations_file({2**63: 1}),
        confirmations_file({-1: 1}),
        confirmations_file({1: 2**63}),
        confirmations_file(dict.fromkeys(range(1, 202), 1)),
    ],
)
def test_a_damaged_file_is_not_ignored(start, shelf, content):
    path = shelf.folder / NAME / "confirmed.json"
    with start() as client:
        inspect(client, 62)
        path.write_bytes(content)
        for answer in (ask(client, "reload"), confirm(client, 1)):
            assert problem(answer) == (422, "unusable_model")
            assert "delete the file" in answer.json()["detail"]
        assert path.read_bytes() == content
    with pytest.raises(ArtifactError, match=r"confirmed\.json cannot be read"), start():
        pytest.fail("it must not serve")


def test_measures_of_another_size_are_not_ignored(start, shelf):
    path = shelf.folder / NAME / "confirmed.json"
    with start() as client:
        inspect(client, 62)
        confirm(client, 1)
        content = stored(shelf)
        content["1"]["entries"][0]["photographs"]["1"] = {"brightness": "AAA="}
        path.write_text(json.dumps(content))
        answer = ask(client, "reload")
        assert problem(answer) == (422, "unusable_model")
        assert "do not fit the limits" in answer.json()["detail"]


def test_damaged_measures_of_the_candidate_stop_the_candidate_alone(start, shelf, caplog):
    know_training(shelf.put("2"), shelf.predictors["1"].config.training_photographs)
    shelf.set_aliases(stable="1", candidate="2")
    path = shelf.folder / NAME / "confirmed.json"
    content = json.loads(confirmations_file({1: 1}))["1"]
    content["sha256"] = manifest_sha256(shelf.folder / NAME / "2")
    content["entries"][0]["photographs"] = {"1": {"brightness": "AAA="}}
    path.write_text(json.dumps({"2": content}))
    with start() as client:
        assert label(inspect(client, 110)) == ("good", False)
        inspect(client, 62, "2")
        assert confirm(client, 2).status_code == 200
        versions = [model["version"] for model in client.get("/v1/models").json()["models"]]
    assert versions == ["1"]
    assert "the alias 'candidate' is not served: confirmed.json has measures that do not fit" in caplog.text


def test_the_answer_is_that_of_the_change_even_if_its_version_is_replaced_at_once(client, monkeypatch):
    inspect(client, 62)

    async def replace_all(loader):
        loader.registry.replace(NAME, {})

    monkeypatch.setattr("api.models.loader.ModelLoader._release_replaced", replace_all)
    answer = confirm(client, 1)
    assert (answer.status_code, answer.json().get("count")) == (200, 1)


def test_a_single_model_says_what_to_do(shelf, start, monkeypatch):
    monkeypatch.setattr("api.models.store.SingleModel.names", lambda _: [NAME])
    found = type("Found", (), {"manifest": type("Named", (), {"name": NAME, "version": "1"})})
    monkeypatch.setattr("api.models.store.open_artifact", lambda _: found)
    with start(models=None, model=shelf.folder / NAME / "1") as client:
        inspect(client, 62)
        answer = confirm(client, 1)
    assert problem(answer) == (409, "confirmations_fixed")
    assert "--models FOLDER" in answer.json()["detail"]
