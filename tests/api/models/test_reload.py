"""Reloading with stubs for the models; damaged and signed models are real ones."""

import asyncio
import logging
import shutil
import threading
from pathlib import Path

import pytest

from api.app import create_app
from api.listener.reloading import Reloader
from api.models import loader
from api.models.registry import ModelRegistry
from api.models.reload_log import log_reload
from api.settings import Settings
from segdec.artifact import manifest_sha256, open_artifact
from segdec.artifact.signatures import generate_key_pair, read_private_key, write_signature
from segdec.errors import ArtifactError
from tests.api.conftest import PNG, ServiceClient
from tests.api.models.conftest import ADMIN
from tests.api.models.stub_models import NAME
from tests.forged_artifact import forge


def ask(client, part, path="/v1/predict"):
    answer = client.post(path, content=part, headers=PNG)
    assert answer.status_code == 200, answer.text
    return answer.json()["model"]["version"]


@pytest.fixture
def reload(client):
    """Requests a reload of the client's service."""
    return lambda name=NAME: client.post(f"/v1/admin/models/{name}/reload", headers=ADMIN)


@pytest.fixture
def logged(caplog):
    """Reads the one log line of a reload: level, traceback and fields."""
    caplog.set_level(logging.INFO, logger="api")
    names = ("model", "before", "after", "result", "key", "client", "request_id")

    def read():
        (line,) = [record for record in caplog.records if "reload" in record.getMessage()]
        caplog.clear()
        assert line.total_ms >= 0
        facts = {name: vars(line)[name] for name in names if name in vars(line)}
        return {"level": line.levelname, "traceback": bool(line.exc_info), **facts}

    return read


def test_aliases_move_without_loading_again(client, shelf, part, reload):
    shelf.put("2")
    shelf.set_aliases(stable="1", canary="2")
    answer = reload().json()
    assert (answer["loaded"], answer["kept"], answer["removed"]) == (["2"], ["1"], [])
    assert set(answer["timing_ms"]) == {"load", "self_test", "warm", "drain"}
    paths = ("predict", "versions/stable/predict", "versions/canary/predict", "versions/2/predict")
    assert [ask(client, part, f"/v1/models/{NAME}/{path}") for path in paths] == ["1", "1", "2", "2"]
    shelf.set_aliases(stable="2")
    answer = reload().json()
    assert (answer["loaded"], answer["kept"], answer["removed"]) == ([], ["2"], ["1"])
    assert [model["aliases"] for model in answer["models"]] == [["stable"]]
    assert ask(client, part) == "2"
    assert [model["version"] for model in client.get(f"/v1/models/{NAME}").json()["models"]] == ["2"]


def test_engine_that_fails_leaves_the_old_one(client, shelf, part, monkeypatch, logged, reload):
    def fail(*_: object) -> None:
        raise MemoryError("secret internals")

    monkeypatch.setattr(loader, "run_self_test", fail)
    shelf.put("2")
    shelf.set_aliases(stable="2")
    problem = reload().json()
    assert (problem["status"], problem["code"]) == (422, "unusable_model")
    assert "MemoryError" in problem["detail"] and "secret" not in problem["detail"]
    line = logged()
    assert (line["level"], line["traceback"], line["result"]) == ("ERROR", True, "unusable_model")
    assert ask(client, part) == "1"


def test_request_is_answered_by_the_version_that_it_began_with(client, shelf, part, reload):
    """The old model, blocked in its network, answers although another one is loaded."""
    old, answers = shelf.predictors["1"], []
    old.block()
    asking = threading.Thread(target=lambda: answers.append(ask(client, part)))
    asking.start()
    assert old.entered.acquire(timeout=30)
    shelf.put("2")
    shelf.set_aliases(stable="2")
    reloading = threading.Thread(target=lambda: answers.append(reload().json()["loaded"]))
    reloading.start()
    old.gate.set()  # the new one is warmed up in the same thread, so the old one ends first
    asking.join()
    reloading.join()
    assert "1" in answers and ["2"] in answers


def test_reloads_under_load_fail_no_request_and_mix_no_models(start, shelf, part):
    """Each answer has the version that computed it, which its threshold shows."""
    shelf.predictors["1"].threshold = 0.25
    shelf.put("2").threshold = 0.75
    answers, answered, ended = [], threading.Semaphore(0), threading.Event()

    def send(client):
        while not ended.is_set():
            answers.append(client.post("/v1/predict", content=part, headers=PNG))
            answered.release()

    with start(batch_sizes=(1, 4)) as client:
        threads = [threading.Thread(target=send, args=[client]) for _ in range(6)]
        for thread in threads:
            thread.start()
        for number in range(20):
            shelf.set_aliases(stable="12"[number % 2])
            assert client.post(f"/v1/admin/models/{NAME}/reload", headers=ADMIN).status_code == 200
            assert all(answered.acquire(timeout=30) for _ in threads)
        ended.set()
        for thread in threads:
            thread.join()
    assert {answer.status_code for answer in answers} == {200}
    named = [
        (answer.json()["model"]["version"], answer.json()["decision"]["threshold"]) for answer in answers
    ]
    assert set(named) == {("1", 0.25), ("2", 0.75)}


def test_default_stays_when_another_model_is_added_and_when_it_is_deleted(client, shelf, part, reload):
    shelf.put("1", "other")
    assert reload("other").json()["loaded"] == ["1"]
    assert ask(client, part) == "1"
    shutil.rmtree(shelf.folder / "other")
    assert reload("other").json()["removed"] == ["1"]
    assert [model["name"] for model in client.get("/v1/models").json()["models"]] == [NAME]
    shutil.rmtree(shelf.folder / NAME)
    assert reload().json()["code"] == "unusable_model"
    assert ask(client, part) == "1"


def test_model_in_memory_cannot_be_reloaded(serve, make_app, key_files):
    with serve(make_app(admin_keys=key_files["admin_keys"])) as client:
        assert client.post("/v1/admin/models/unnamed/reload", headers=ADMIN).status_code == 404


def test_reload_is_one_line_with_client_and_result(client, shelf, logged, caplog, reload):
    shelf.put("2")
    shelf.set_aliases(stable="1", canary="2")
    id_of_request = reload().headers["X-Request-ID"]
    times = [name for name in vars(caplog.records[-1]) if name.endswith("_ms")]
    assert {"load_ms", "self_test_ms", "warm_ms", "drain_ms", "total_ms"} <= set(times)
    assert logged() == {
        "level": "INFO",
        "traceback": False,
        "model": NAME,
        "before": "1 (stable)",
        "after": "1 (stable), 2 (canary)",
        "result": "loaded",
        "key": "admin",
        "client": "127.0.0.1",
        "request_id": id_of_request,
    }
    reload()
    assert logged()["result"] == "unchanged"
    reload("absent")
    line = logged()
    assert (line["level"], line["model"], line["result"]) == ("WARNING", "absent", "model_not_found")
    client.app.state.service.drain()
    reload()
    assert logged()["result"] == "draining"


def test_reload_cancelled_by_a_stop_is_one_line_without_a_traceback(logged):
    async def cancel_reload() -> None:
        reloading = asyncio.create_task(log_reload(ModelRegistry(None), "tiny", {}, asyncio.Event().wait()))
        await asyncio.sleep(0)
        reloading.cancel()
        await asyncio.wait([reloading])

    asyncio.run(cancel_reload())
    line = logged()
    assert (line["level"], line["traceback"], line["result"]) == ("WARNING", False, "CancelledError")


def test_signal_reloads_every_model(client, shelf, caplog):
    async def reload_all() -> None:
        await Reloader(client.app, None).reload()

    def found() -> set[tuple[str, str]]:
        models = client.get("/v1/models").json()["models"]
        return {(model["name"], model["version"]) for model in models}

    shelf.put("2")
    shelf.set_aliases(stable="2")
    shelf.put("1", "other")
    client.run(reload_all)
    assert found() == {(NAME, "2"), ("other", "1")}
    shelf.set_aliases(stable="9")
    shutil.rmtree(shelf.folder / "other")
    client.run(reload_all)
    assert found() == {(NAME, "2")}
    lines = [record.getMessage() for record in caplog.records if record.name == "api.listener.reloading"]
    assert any(line.startswith(f"SIGHUP: models unchanged: {NAME}: ") for line in lines)


# === Real models ===


@pytest.fixture
def release(tmp_path_factory) -> Path:
    """A private key; its public key is in `.pub` and in `trusted.pem`."""
    private = tmp_path_factory.mktemp("keys") / "release.key"
    shown, _ = generate_key_pair(private)
    shutil.copy(shown, private.with_name("trusted.pem"))
    return private


def sign(folder: Path, private: Path) -> None:
    write_signature(folder, open_artifact(folder).content, read_private_key(private))


@pytest.fixture
def start_real(tiny_artifact, tiny_config, release, key_files, tmp_path):
    """Starts a service with two versions of a real model, the second with threshold 1; it trusts one key."""
    for version in ("1", "2"):
        shutil.copytree(tiny_artifact, tmp_path / "real" / "tiny" / version)
    thresholds = {**tiny_config.thresholds.model_dump(), "score": 1.0}
    forge(tmp_path / "real" / "tiny" / "2", version="2", thresholds=thresholds)
    (tmp_path / "real" / "tiny" / "aliases.json").write_text('{"stable": "1"}')
    words = {"models": tmp_path / "real", "batch_sizes": (1,), "admin_keys": key_files["admin_keys"]}
    settings = Settings(**words, require_signature=release.with_name("trusted.pem"))
    return lambda: ServiceClient(create_app(settings))


def test_service_does_not_start_with_an_unsigned_model(start_real):
    with pytest.raises(ArtifactError, match="is not signed"), start_real():
        pytest.fail("it must not serve")


@pytest.mark.parametrize("damaged", ["signature", "manifest.json"])
def test_service_starts_without_an_unsigned_or_damaged_previous_version(
    start_real, tmp_path, release, caplog, monkeypatch, damaged
):
    folder = tmp_path / "real" / "tiny"
    sign(folder / "1", release)
    if damaged != "signature":
        sign(folder / "2", release)
        (folder / "2" / damaged).write_text("{")
    (folder / "aliases.json").write_text('{"stable": "1", "previous": "2"}')
    # Other tests of the process may have changed this logger.
    monkeypatch.setattr(logging.getLogger("api.models.loader"), "disabled", False)
    caplog.set_level(logging.WARNING, logger="api.models.loader")
    with start_real() as client:
        models = client.get("/v1/models").json()["models"]
    assert [model["version"] for model in models] == ["1"]
    assert "the alias 'previous' is not served" in caplog.text


def test_only_complete_signed_versions_replace_the_served_one(start_real, tmp_path, release, part):
    """Trusted keys change without a restart."""
    folder, trusted = tmp_path / "real" / "tiny", release.with_name("trusted.pem")
    second = release.with_name("second.key")
    generate_key_pair(second)
    sign(folder / "1", release)
    sign(folder / "2", second)
    shown = [key.with_suffix(".pub").read_bytes() for key in (release, second)]
    with start_real() as client:

        def reload() -> dict:
            return client.post("/v1/admin/models/tiny/reload", headers=ADMIN).json()

        (folder / "aliases.json").write_text('{"stable": "2"}')
        assert "unknown keys" in reload()["detail"]
        assert ask(client, part) == "1"
        trusted.write_bytes(b"".join(shown))
        damaged = next(folder.glob("2/**/*.pb"))
        content = damaged.read_bytes()
        damaged.write_bytes(content[:-1])
        problem = reload()
        assert problem["code"] == "unusable_model"
        assert damaged.name in problem["detail"] and "still served" in problem["detail"]
        damaged.write_bytes(content)
        assert reload()["loaded"] == ["2"]
        now = client.post("/v1/predict", content=part, headers=PNG).json()
        expected = {"name": "tiny", "version": "2", "sha256": manifest_sha256(folder / "2")}
        assert (now["model"], now["decision"]["threshold"]) == (expected, 1.0)
        trusted.write_bytes(shown[0])  # the second one was stolen: its signatures are not accepted any more
        assert "unknown keys" in reload()["detail"]


def test_a_service_without_a_model_serves_the_first_one(start, shelf, part):
    shutil.rmtree(shelf.folder)
    with start(allow_no_model=True) as client:
        assert client.get("/readyz").status_code == 200
        assert client.get("/v1/models").json() == {"models": []}
        refused = client.post("/v1/predict", content=part, headers=PNG)
        assert (refused.status_code, refused.json()["code"]) == (404, "model_not_found")
        assert "No model is served yet" in refused.json()["detail"]
        for name in (NAME, "others"):
            shelf.put("1", name)
            answer = client.post(f"/v1/admin/models/{name}/reload", headers=ADMIN)
            assert answer.json()["loaded"] == ["1"]
        answer = client.post("/v1/predict", content=part, headers=PNG).json()
        assert answer["model"]["name"] == NAME
