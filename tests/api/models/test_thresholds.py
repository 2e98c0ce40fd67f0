"""Thresholds that an administrator sets: they replace those of the manifest, and survive everything else."""

import json
import logging
import shutil
import threading

import pytest

from api.app import create_app
from api.models import file_update
from api.record.tables import audit
from api.settings import Settings
from segdec.artifact import manifest_sha256, open_artifact
from segdec.artifact.signatures import generate_key_pair, read_private_key, write_signature
from segdec.errors import ArtifactError
from tests.api.conftest import PNG, ServiceClient
from tests.api.models.conftest import ADMIN, ask
from tests.api.models.stub_models import NAME


def set_thresholds(client, version="1", score=0.9, review=None, **other):
    body = {"version": version, "score": score, "review": review, **other}
    return client.post(f"/v1/admin/models/{NAME}/thresholds", headers=ADMIN, json=body)


def reset(client, version="1"):
    return set_thresholds(client, version, None, None)


def decide(client, part, version="1"):
    """Label, threshold and review threshold of an answer; the score of the part is 0.8."""
    answer = client.post(f"/v1/models/{NAME}/versions/{version}/predict", content=part, headers=PNG).json()
    return tuple(answer["decision"][name] for name in ("label", "threshold", "review_threshold"))


def listed(client):
    """Version → thresholds in use, of the manifest."""
    models = client.get("/v1/models").json()["models"]
    return {model["version"]: (model["thresholds"], model["manifest"]["thresholds"]) for model in models}


def stored(shelf):
    path = shelf.folder / NAME / "thresholds.json"
    return json.loads(path.read_bytes()) if path.exists() else None


# === Changes ===


def test_thresholds_are_used_at_once_and_reset(client, shelf, part):
    assert decide(client, part) == ("scratch", 0.5, None)
    answer = set_thresholds(client, score=0.9, review=0.6)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["loaded"], answer.json()["kept"]) == ([], ["1"])
    assert decide(client, part) == ("review", 0.9, 0.6)
    used, own = listed(client)["1"]
    assert used == {"score": 0.9, "review": 0.6, "of_model": False}
    assert own == {"score": 0.5, "mask": 0.5, "mask_share": 0.0, "refine_mask": False, "review": None}
    sha256 = manifest_sha256(shelf.folder / NAME / "1")
    assert stored(shelf) == {"1": {"sha256": sha256, "score": 0.9, "review": 0.6}}
    reset(client)
    assert decide(client, part) == ("scratch", 0.5, None)
    assert listed(client)["1"][0] == {"score": 0.5, "review": None, "of_model": True}
    assert stored(shelf) == {}
    assert shelf.loaded == ["1"]


def test_thresholds_equal_to_those_of_the_model_are_still_set(client):
    set_thresholds(client, score=0.5)
    assert listed(client)["1"][0] == {"score": 0.5, "review": None, "of_model": False}


def test_set_thresholds_survive_reload_and_restart(start, part):
    with start() as client:
        set_thresholds(client, score=0.9)
        ask(client, "reload")
        assert decide(client, part) == ("good", 0.9, None)
    with start() as client:
        assert decide(client, part) == ("good", 0.9, None)
        assert listed(client)["1"][0]["of_model"] is False


def test_each_version_keeps_its_own_thresholds(client, shelf, part):
    shelf.put("2")
    ask(client, "candidate", {"version": "2"})
    set_thresholds(client, "candidate", 0.9)
    assert set(stored(shelf)) == {"2"}
    ask(client, "promote")
    assert (decide(client, part, "2")[1], decide(client, part, "1")[1]) == (0.9, 0.5)
    set_thresholds(client, "1", 0.3)
    ask(client, "rollback")
    assert decide(client, part)[1] == 0.3
    ask(client, "candidate", {"version": "2"})
    assert decide(client, part, "2")[1] == 0.9


def test_another_model_of_the_same_version_uses_its_own_thresholds(client, shelf, part, caplog):
    set_thresholds(client, score=0.9)
    (shelf.folder / NAME / "1" / "manifest.json").write_text('{"version": "1", "trained": "again"}')
    refused = set_thresholds(client, score=0.8)
    assert (refused.status_code, refused.json()["code"]) == (409, "model_changed")
    ask(client, "reload")
    assert decide(client, part) == ("scratch", 0.5, None)
    assert "were set for another model of this version" in caplog.text


def test_a_request_that_has_started_keeps_its_threshold(client, shelf, part):
    network, answers = shelf.predictors["1"], []
    network.block()
    asking = threading.Thread(target=lambda: answers.append(decide(client, part)))
    asking.start()
    assert network.entered.acquire(timeout=30)
    changing = threading.Thread(target=lambda: answers.append(set_thresholds(client).status_code))
    changing.start()
    network.gate.set()
    asking.join()
    changing.join()
    assert sorted(answers, key=str) == [("scratch", 0.5, None), 200]
    assert decide(client, part) == ("good", 0.9, None)


def test_the_change_is_logged(client, caplog):
    caplog.set_level(logging.INFO, logger="api")
    set_thresholds(client, score=0.9, review=0.6)
    (line,) = [record for record in caplog.records if record.getMessage() == "thresholds"]
    assert (line.before, line.after) == ("1 (stable)", "1 (stable, score 0.9, review 0.6)")
    assert (line.result, line.key) == ("thresholds changed", "admin")


# === Refusals ===


@pytest.mark.parametrize(
    ("body", "status", "code", "words"),
    [
        ({"score": 0.4, "review": 0.4}, 400, "bad_json", "expected a lower one"),
        ({"score": None, "review": 0.4}, 400, "bad_json", "null for both"),
        ({"score": 0}, 400, "bad_json", "greater than 0"),
        ({"score": 1}, 400, "bad_json", "less than 1"),
        ({"score": -0.1}, 400, "bad_json", "greater than 0"),
        ({"score": "much"}, 400, "bad_json", "valid number"),
        ({"mask": 0.5}, 400, "bad_json", "Extra inputs"),
        ({"version": "9"}, 404, "version_not_found", "Expected one of: '1', 'stable'"),
        ({"version": "../1"}, 404, "version_not_found", "'../1'"),
        ({"version": ""}, 400, "bad_json", "at least 1 character"),
    ],
)
def test_refused_change_changes_nothing(client, shelf, body, status, code, words):
    answer = set_thresholds(client, **body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert words in answer.json()["detail"]
    assert stored(shelf) is None and listed(client)["1"][0]["of_model"]


def test_incomplete_and_hostile_bodies_are_refused(client):
    path = f"/v1/admin/models/{NAME}/thresholds"
    for body in (b"", b"[]", b'{"version": "1"}', b'{"version": "1", "score": NaN, "review": null}', b"\xff"):
        answer = client.post(path, headers=ADMIN, content=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_json")
    body = {"version": "1", "score": 0.4, "review": None}
    unknown = client.post("/v1/admin/models/nothing/thresholds", headers=ADMIN, json=body)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "model_not_found")


def test_a_single_model_says_what_to_do(shelf, start, monkeypatch):
    monkeypatch.setattr("api.models.store.SingleModel.names", lambda _: [NAME])
    found = type("Found", (), {"manifest": type("Named", (), {"name": NAME, "version": "1"})})
    monkeypatch.setattr("api.models.store.open_artifact", lambda _: found)
    with start(models=None, model=shelf.folder / NAME / "1") as client:
        answer = set_thresholds(client)
    assert (answer.status_code, answer.json()["code"]) == (409, "thresholds_fixed")
    assert "--models FOLDER" in answer.json()["detail"] and "calibrate" in answer.json()["detail"]


def test_a_disk_that_cannot_be_written_changes_nothing(client, shelf, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(file_update, "write_text_atomic", fail)
        answer = set_thresholds(client)
    assert (answer.status_code, answer.json()["code"]) == (409, "thresholds_fixed")
    assert "No space left" in answer.json()["detail"]
    with monkeypatch.context() as fixed:
        fixed.setattr(file_update.os, "access", lambda path, _: path != shelf.folder / NAME)
        assert "read-only" in set_thresholds(client).json()["detail"]
    assert listed(client)["1"][0]["of_model"]


def test_a_version_that_is_gone_from_the_disk_is_refused(client, shelf):
    shelf.put("2")
    ask(client, "candidate", {"version": "2"})
    shutil.rmtree(shelf.folder / NAME / "2")
    assert set_thresholds(client, "2").json()["code"] == "model_changed"
    shelf.put("2")
    shelf.set_aliases(stable="1")
    assert set_thresholds(client, "2").json()["code"] == "model_changed"


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"1": {"score": 0.4}}',
        b'{"1": {"sha256": "%s", "score": 0.4, "review": 0.5}}' % (b"a" * 64),
        b'{"1": {"sha256": "%s", "score": 2, "review": null}}' % (b"a" * 64),
    ],
)
def test_a_damaged_file_is_not_ignored(start, shelf, content):
    path = shelf.folder / NAME / "thresholds.json"
    with start() as client:
        path.write_bytes(content)
        for answer in (ask(client, "reload"), set_thresholds(client)):
            assert (answer.status_code, answer.json()["code"]) == (422, "unusable_model")
            assert "delete the file" in answer.json()["detail"]
    with pytest.raises(ArtifactError, match=r"thresholds\.json cannot be read"), start():
        pytest.fail("it must not serve")


# === Record ===


def test_record_and_audit_have_the_thresholds(start, part, tmp_path):
    with start(record="required", record_folder=tmp_path / "record") as client:
        set_thresholds(client, score=0.9, review=0.6)
        set_thresholds(client, score=0.9, review=0.6)
        answer = client.post("/v1/inspect", content=part, headers=PNG).json()
        record = client.get(f"/v1/records/{answer['record_id']}", headers=ADMIN).json()
        reset(client)
        ask(client, "reload")
        review = {"label": "good", "reviewer": "Ada"}
        path, headers = f"/v1/records/{answer['record_id']}/review", ADMIN | {"If-Match": '"0"'}
        assert client.request("PUT", path, json=review, headers=headers).status_code == 200
        latest = client.get("/v1/audit?about=models", headers=ADMIN).json()["changes"]
        assert len(client.get("/v1/audit", headers=ADMIN).json()["changes"]) == 3
        assert client.get("/v1/audit?about=parts", headers=ADMIN).status_code == 400

        async def read():
            statement = audit.select().order_by(audit.c.id)
            reading = client.app.state.service.recording.record.read
            return await reading(lambda connection: connection.execute(statement).mappings().all())

        rows = client.run(read)
    decision = record["answer"]["decision"]
    assert (decision["label"], decision["threshold"], decision["review_threshold"]) == ("review", 0.9, 0.6)
    own = {"model": NAME, "version": "1", "score": 0.5, "review": None, "of_model": True}
    given = {**own, "score": 0.9, "review": 0.6, "of_model": False}
    assert [row["what"] for row in rows] == ["thresholds", "thresholds", "review"]
    assert [row["who"] for row in rows[:2]] == ["admin", "admin"]
    assert [json.loads(row["before"]) for row in rows[:2]] == [own, given]
    assert [json.loads(row["after"]) for row in rows[:2]] == [given, own]
    assert [change["after"] for change in latest] == [own, given]


# === Real models ===


@pytest.fixture
def signed(tiny_artifact, tmp_path):
    """A folder with a signed model, and the file of trusted keys."""
    place = tmp_path / "real" / "tiny" / "1"
    shutil.copytree(tiny_artifact, place)
    public, _ = generate_key_pair(tmp_path / "approver.key")
    write_signature(place, open_artifact(place).content, read_private_key(tmp_path / "approver.key"))
    return tmp_path / "real", public


def test_a_signed_model_stays_valid(signed, tiny_config, key_files, part):
    folder, trusted = signed
    before = manifest_sha256(folder / "tiny" / "1")
    settings = {"models": folder, "require_signature": trusted, "admin_keys": key_files["admin_keys"]}
    body = {"version": "1", "score": 0.75, "review": 0.25}
    for change in (True, False):
        with ServiceClient(create_app(Settings(**settings, batch_sizes=(1,)))) as client:
            if change:
                answer = client.post("/v1/admin/models/tiny/thresholds", headers=ADMIN, json=body)
                assert answer.status_code == 200, answer.text
            answer = client.post("/v1/predict", content=part, headers=PNG).json()
            assert answer["model"]["sha256"] == before
            assert (answer["decision"]["threshold"], answer["decision"]["review_threshold"]) == (0.75, 0.25)
            (model,) = client.get("/v1/models").json()["models"]
            assert model["thresholds"]["of_model"] is False
            assert model["manifest"]["thresholds"] == tiny_config.thresholds.model_dump()
    artifact = open_artifact(folder / "tiny" / "1")
    artifact.check_files()
    assert artifact.sha256 == before
