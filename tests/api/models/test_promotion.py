"""Candidate, promotion and rollback: each is one call that makes the whole change or none."""

import json
import os
import threading

import pytest

from api.models import aliases, file_update, loader
from api.models.registry import ModelRegistry
from tests.api.conftest import PNG
from tests.api.models.conftest import ADMIN, ask, served
from tests.api.models.stub_models import NAME


def choose(client, version):
    return ask(client, "candidate", {"version": version})


def answering(client, part):
    return client.post("/v1/predict", content=part, headers=PNG).json()["model"]["version"]


# === Changes ===


def test_a_candidate_is_promoted_and_rolled_back(client, shelf, part):
    shelf.put("2")
    answer = choose(client, "2")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["loaded"], answer.json()["kept"]) == (["2"], ["1"])
    assert shelf.aliases == {"stable": "1", "candidate": "2"}
    assert answering(client, part) == "1"
    promoted = ask(client, "promote").json()
    assert (promoted["loaded"], promoted["kept"]) == ([], ["1", "2"])
    assert shelf.aliases == {"stable": "2", "previous": "1"}
    assert answering(client, part) == "2"
    assert ask(client, "rollback").json()["removed"] == ["2"]
    assert ask(client, "rollback").status_code == 409
    choose(client, "2")
    assert choose(client, None).json()["removed"] == ["2"]
    assert shelf.aliases == {"stable": "1"}
    assert (answering(client, part), served(client)) == ("1", {"1": ["stable"]})


def test_other_aliases_stay(client, shelf):
    shelf.put("2"), shelf.put("3")
    shelf.set_aliases(stable="1", canary="3", candidate="2")
    ask(client, "promote")
    assert shelf.aliases == {"stable": "2", "canary": "3", "previous": "1"}
    ask(client, "rollback")
    assert shelf.aliases == {"stable": "1", "canary": "3"}


def test_a_rollback_keeps_the_candidate_unless_it_becomes_stable(client, shelf):
    shelf.put("2"), shelf.put("3")
    choose(client, "2"), ask(client, "promote"), choose(client, "3")
    assert shelf.aliases == {"stable": "2", "previous": "1", "candidate": "3"}
    assert ask(client, "rollback").json()["removed"] == ["2"]
    assert shelf.aliases == {"stable": "1", "candidate": "3"}
    assert served(client) == {"1": ["stable"], "3": ["candidate"]}
    ask(client, "promote"), choose(client, "1")
    assert shelf.aliases == {"stable": "3", "previous": "1", "candidate": "1"}
    ask(client, "rollback")
    assert shelf.aliases == {"stable": "1"} and served(client) == {"1": ["stable"]}


def test_without_aliases_the_served_version_stays_stable(client, shelf, part):
    assert shelf.aliases is None
    shelf.put("2"), shelf.put("3")
    choose(client, "2")
    assert shelf.aliases == {"stable": "1", "candidate": "2"}
    assert answering(client, part) == "1"


# === Refusals ===


@pytest.mark.parametrize(
    ("what", "body", "status", "code", "words"),
    [
        ("promote", None, 409, "no_candidate", "Set it first"),
        ("rollback", None, 409, "no_previous", "a promotion gives"),
        ("candidate", {"version": "1"}, 409, "already_stable", "Expected another version"),
        ("candidate", {"version": "9"}, 404, "version_not_found", "Expected one of: 1, 2"),
        ("candidate", {"version": "../1"}, 404, "version_not_found", "no version '../1'"),
        ("candidate", {"version": 2}, 400, "bad_json", "valid string"),
        ("candidate", {"alias": "2"}, 400, "bad_json", "Field required"),
        ("candidate", {"version": "2" * 70_000}, 413, "body_too_large", ""),
        ("candidate", None, 400, "bad_json", "Expected a JSON object"),
    ],
)
def test_refused_change_changes_nothing(client, shelf, what, body, status, code, words):
    shelf.put("2")
    answer = ask(client, what, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert words in answer.json()["detail"]
    assert shelf.aliases is None and served(client) == {"1": ["stable"]}
    assert client.post("/v1/admin/models/%2e%2e/promote", headers=ADMIN).status_code == 404


def test_a_single_model_has_no_aliases(shelf, start, monkeypatch):
    monkeypatch.setattr("api.models.store.SingleModel.names", lambda _: [NAME])
    stored = loader.StoredModel({"1": shelf.folder / NAME / "1"}, {"stable": "1"})
    monkeypatch.setattr("api.models.store.SingleModel.find", lambda *_: stored)
    with start(models=None, model=shelf.folder / NAME / "1") as client:
        answer = ask(client, "promote")
    assert (answer.status_code, answer.json()["code"]) == (409, "aliases_fixed")
    assert "--models" in answer.json()["detail"]


def test_read_only_folder_is_refused_before_a_model_is_loaded(client, shelf, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: path != shelf.folder / NAME)
    shelf.put("2")
    shelf.set_aliases(stable="1", candidate="2")
    answer = ask(client, "promote")
    assert (answer.status_code, answer.json()["code"]) == (409, "aliases_fixed")
    assert "read-only" in answer.json()["detail"] and "reload" in answer.json()["detail"]
    assert shelf.loaded == ["1"]


def test_full_disk_changes_nothing(client, shelf, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    shelf.put("2")
    choose(client, "2")
    monkeypatch.setattr(file_update, "write_text_atomic", fail)
    answer = ask(client, "promote")
    assert (answer.status_code, answer.json()["code"]) == (409, "aliases_fixed")
    assert "No space left" in answer.json()["detail"]
    assert served(client) == {"1": ["stable"], "2": ["candidate"]}


# === Failures ===


def test_a_version_that_fails_its_self_test_changes_nothing(client, shelf, part):
    shelf.set_aliases(stable="1", canary="1")
    shelf.put("2")
    shelf.broken.add("2")
    answer = choose(client, "2")
    assert (answer.status_code, answer.json()["code"]) == (422, "unusable_model")
    assert "self-test of 2 failed" in answer.json()["detail"]
    assert shelf.aliases == {"stable": "1", "canary": "1"}
    assert answering(client, part) == "1"


def test_concurrent_changes_are_refused(client, shelf):
    """While the candidate is tested, another call is refused; aliases that change meanwhile win."""
    predictor = shelf.put("2")
    predictor.gate.clear()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(choose(client, "2")))
    asking.start()
    assert predictor.entered.acquire(timeout=30)
    assert choose(client, None).json()["code"] == "reload_running"
    assert client.post(f"/v1/admin/models/{NAME}/reload", headers=ADMIN).json()["code"] == "reload_running"
    shelf.set_aliases(stable="1", canary="2")
    predictor.gate.set()
    asking.join()
    assert (answers[0].status_code, answers[0].json()["code"]) == (409, "aliases_changed")
    assert shelf.aliases == {"stable": "1", "canary": "2"}


@pytest.mark.parametrize(
    ("step", "stable"), [((aliases.AliasFileUpdate, "write"), "1"), ((ModelRegistry, "replace"), "2")]
)
def test_after_a_kill_the_aliases_on_disk_are_served(start, shelf, part, monkeypatch, step, stable):
    """A service that begins when another one is at this step, and no further, finds what can be served."""
    shelf.put("2")
    shelf.set_aliases(stable="1", candidate="2")
    reached, may_continue = threading.Event(), threading.Event()
    do = getattr(*step)

    def wait(*arguments):
        reached.set()
        assert may_continue.wait(30)
        do(*arguments)

    with start() as client:
        with monkeypatch.context() as patched:
            patched.setattr(*step, wait)
            asking = threading.Thread(target=ask, args=(client, "promote"))
            asking.start()
            assert reached.wait(30)
        with start() as again:
            assert answering(again, part) == stable
        may_continue.set()
        asking.join()


# === Audit ===


def audited(client):
    """Who, what, before and after of each line."""

    async def read():
        statement = "SELECT who, what, before, after FROM audit ORDER BY id"
        record = client.app.state.service.recording.record
        return await record.read(lambda connection: connection.exec_driver_sql(statement).all())

    return [(who, what, json.loads(old), json.loads(new)) for who, what, old, new in client.run(read)]


def test_each_change_is_one_line_of_the_audit(start, shelf, tmp_path):
    shelf.put("2"), shelf.put("3")
    shelf.set_aliases(stable="1")
    shelf.broken.add("3")
    with start(record="required", record_folder=tmp_path / "record") as client:
        choose(client, "3")
        choose(client, "2")
        choose(client, "2")
        ask(client, "promote")
        ask(client, "promote")
        ask(client, "rollback")
        entries = audited(client)
    changed = [{"stable": "1"}, {"stable": "1", "candidate": "2"}, {"stable": "2", "previous": "1"}]
    states = [{"model": NAME, "aliases": each} for each in (*changed, {"stable": "1"})]
    assert entries == [
        ("admin", "candidate", states[0], states[1]),
        ("admin", "promote", states[1], states[2]),
        ("admin", "roll back", states[2], states[3]),
    ]
