import asyncio
import json
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from api.app import create_app
from api.listener.reloading import Reloader
from api.models import loader
from api.models.registry import ModelRegistry
from api.models.reload_log import log_reload
from api.routes.keys import make_key
from api.settings import Settings
from segdec.artifact import manifest_sha256, open_artifact
from segdec.artifact.signatures import generate_key_pair, read_private_key, write_signature
from segdec.errors import ArtifactError
from segdec.export.model_export import ModelCard, export_model
from segdec.schemas import ReloadAnswer
from tests.api.conftest import ServiceClient

PNG = {"Content-Type": "image/png"}
RELOAD = "/v1/admin/models/tiny/reload"
KEY, LINE = make_key("maintenance")
ADMIN = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def versions(tmp_path_factory, tiny_network, tiny_config) -> Path:
    """A folder with the versions 1 and 2 of one model; they differ in their threshold."""
    folder = tmp_path_factory.mktemp("versions")
    for name, version, score in (("tiny", "1", 0.0), ("tiny", "2", 1.0), ("other", "1", 0.5)):
        thresholds = tiny_config.thresholds.model_copy(update={"score": score})
        export_model(
            tiny_network,
            folder / version if name == "tiny" else folder.parent / name,
            tiny_config.model_copy(update={"thresholds": thresholds}),
            ModelCard(name, version),
        )
    return folder


class Shelf:
    """The folder that the service reads, as an operator fills it."""

    def __init__(self, folder: Path, versions: Path) -> None:
        self.folder = folder
        self.versions = versions

    def put(self, version: str) -> Path:
        target = self.folder / "tiny" / version
        shutil.copytree(self.versions / version, target, dirs_exist_ok=True)
        return target

    def label(self, **labels: str) -> None:
        (self.folder / "tiny" / "labels.json").write_text(json.dumps(labels))


@pytest.fixture
def shelf(tmp_path, versions) -> Shelf:
    shelf = Shelf(tmp_path, versions)
    shelf.put("1")
    return shelf


@pytest.fixture
def client(shelf) -> Iterator[ServiceClient]:
    keys = shelf.folder.parent / f"{shelf.folder.name}.keys"
    keys.write_text(LINE)
    settings = Settings(models=shelf.folder, batch_sizes=(1,), admin_keys=keys)
    with ServiceClient(create_app(settings)) as client:
        yield client


def ask(client: ServiceClient, part: bytes, path: str = "/v1/predict") -> dict:
    answer = client.post(path, content=part, headers=PNG)
    assert answer.status_code == 200, answer.text
    return answer.json()


def reload(client: ServiceClient) -> httpx.Response:
    return client.post(RELOAD, headers=ADMIN)


def test_new_version_replaces_the_old_one(client, shelf, part):
    assert ask(client, part)["model"]["version"] == "1"
    shelf.put("2")
    shelf.label(stable="2")
    answer = reload(client).json()
    assert (answer["loaded"], answer["kept"], answer["removed"]) == (["2"], [], ["1"])
    assert set(answer["timing_ms"]) == {"load", "self_test", "warm", "drain"}
    now = ask(client, part)
    assert now["model"] == {
        "name": "tiny",
        "version": "2",
        "sha256": manifest_sha256(shelf.folder / "tiny" / "2"),
    }
    assert now["decision"]["threshold"] == 1.0


def test_labels_move_without_loading_again(client, shelf, part):
    shelf.put("2")
    shelf.label(stable="1", canary="2")
    assert reload(client).json()["loaded"] == ["2"]
    asked = {
        path: ask(client, part, f"/v1/models/tiny/{path}")["model"]["version"]
        for path in ("predict", "versions/stable/predict", "versions/canary/predict", "versions/2/predict")
    }
    assert list(asked.values()) == ["1", "1", "2", "2"]
    shelf.label(stable="2")
    answer = reload(client).json()
    assert (answer["loaded"], answer["kept"], answer["removed"]) == ([], ["2"], ["1"])
    assert [model["labels"] for model in answer["models"]] == [["stable"]]
    assert ask(client, part)["model"]["version"] == "2"
    assert [model["version"] for model in client.get("/v1/models/tiny").json()["models"]] == ["2"]


def test_damaged_version_leaves_the_old_one(client, shelf, part, logged):
    damaged = next(path for path in shelf.put("2").rglob("*.pb"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    shelf.label(stable="2")
    answer = reload(client)
    assert (answer.status_code, answer.json()["code"]) == (422, "unusable_model")
    assert damaged.name in answer.json()["detail"]
    assert "still served" in answer.json()["detail"]
    line = logged()
    assert (line["level"], line["traceback"], line["result"]) == ("ERROR", False, "unusable_model")
    assert (line["before"], line["after"]) == ("1 (stable)", "1 (stable)")
    assert ask(client, part)["model"]["version"] == "1"


def test_engine_that_fails_leaves_the_old_one(client, shelf, part, monkeypatch, logged):
    def fail(*_: object) -> None:
        raise MemoryError("secret internals")

    monkeypatch.setattr(loader, "run_self_test", fail)
    shelf.put("2")
    shelf.label(stable="2")
    problem = reload(client).json()
    assert (problem["status"], problem["code"]) == (422, "unusable_model")
    assert "MemoryError" in problem["detail"]
    line = logged()
    assert (line["level"], line["traceback"], line["result"]) == ("ERROR", True, "unusable_model")
    assert "secret" not in problem["detail"]
    assert ask(client, part)["model"]["version"] == "1"


def test_request_is_answered_by_the_version_that_it_began_with(client, shelf, part, monkeypatch):
    """The old model, blocked in its network, answers although another one is loaded."""
    model = client.app.state.service.models.find()
    entered, proceed = threading.Event(), threading.Event()
    infer = model.predictor.infer

    def hold(images):
        entered.set()
        assert proceed.wait(30)
        return infer(images)

    monkeypatch.setattr(model.predictor, "infer", hold)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask(client, part)))
    asking.start()
    assert entered.wait(30)
    shelf.put("2")
    shelf.label(stable="2")
    reloading = threading.Thread(target=lambda: answers.append(reload(client).json()))
    reloading.start()
    proceed.set()  # the new one is warmed up in the same thread, so the old one ends first
    asking.join()
    reloading.join()
    assert answers[0]["model"]["version"] == "1"
    assert answers[0]["decision"]["threshold"] == 0.0
    assert answers[1]["loaded"] == ["2"]


def test_default_stays_when_another_model_is_added(client, shelf, part, versions):
    other = shelf.folder / "other" / "1"
    shutil.copytree(versions.parent / "other", other)
    assert client.post("/v1/admin/models/other/reload", headers=ADMIN).json()["loaded"] == ["1"]
    assert ask(client, part)["model"]["name"] == "tiny"
    shutil.rmtree(other.parent)
    assert client.post("/v1/admin/models/other/reload", headers=ADMIN).json()["removed"] == ["1"]
    assert [model["name"] for model in client.get("/v1/models").json()["models"]] == ["tiny"]


def test_deleted_default_stays_served(client, shelf, part):
    shutil.rmtree(shelf.folder / "tiny")
    answer = reload(client)
    assert (answer.status_code, answer.json()["code"]) == (422, "unusable_model")
    assert ask(client, part)["model"]["version"] == "1"


def test_model_in_memory_cannot_be_reloaded(serve, make_app, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(LINE)
    with serve(make_app(admin_keys=keys)) as client:
        assert client.post("/v1/admin/models/unnamed/reload", headers=ADMIN).status_code == 404


def test_reload_needs_an_admin_key(client):
    assert client.post(RELOAD).status_code == 401


# === The log ===


@pytest.fixture
def logged(caplog) -> Callable[[], dict[str, object]]:
    """Reads the one log line of a reload: level, traceback and fields."""
    caplog.set_level(logging.INFO, logger="api")
    names = ("model", "before", "after", "result", "key", "client", "request_id")

    def read() -> dict[str, object]:
        (line,) = [record for record in caplog.records if "reload" in record.getMessage()]
        caplog.clear()
        assert line.total_ms >= 0
        facts = {name: vars(line)[name] for name in names if name in vars(line)}
        return {"level": line.levelname, "traceback": bool(line.exc_info), **facts}

    return read


WHO = {"key": "maintenance", "client": "127.0.0.1"}


def test_reload_is_one_line_with_client_and_result(client, shelf, logged, caplog):
    shelf.put("2")
    shelf.label(stable="1", canary="2")
    id_of_request = reload(client).headers["X-Request-ID"]
    times = [name for name in vars(caplog.records[-1]) if name.endswith("_ms")]
    assert {"load_ms", "self_test_ms", "warm_ms", "drain_ms", "total_ms"} <= set(times)
    assert logged() == {
        "level": "INFO",
        "traceback": False,
        "model": "tiny",
        "before": "1 (stable)",
        "after": "1 (stable), 2 (canary)",
        "result": "loaded",
        **WHO,
        "request_id": id_of_request,
    }
    reload(client)
    assert logged()["result"] == "unchanged"


def test_refused_reload_is_one_line(client, logged):
    client.post("/v1/admin/models/absent/reload", headers=ADMIN)
    line = logged()
    assert (line["level"], line["model"], line["result"]) == ("WARNING", "absent", "model_not_found")
    client.app.state.service.drain()
    reload(client)
    assert logged()["result"] == "draining"


def test_reload_cancelled_by_a_stop_is_one_line_without_a_traceback(logged):
    async def cancel_reload() -> None:
        started = asyncio.Event()

        async def never_ends() -> ReloadAnswer:
            started.set()
            await asyncio.Event().wait()
            raise AssertionError

        reloading = asyncio.create_task(log_reload(ModelRegistry(None), "tiny", {}, never_ends()))
        await started.wait()
        reloading.cancel()
        await asyncio.wait([reloading])

    asyncio.run(cancel_reload())
    line = logged()
    assert (line["level"], line["traceback"], line["result"]) == ("WARNING", False, "CancelledError")


def test_signal_reloads_every_model(client, shelf, versions, caplog):
    async def reload_all() -> None:
        await Reloader(client.app, None).reload()

    def found() -> set[tuple[str, str]]:
        models = client.get("/v1/models").json()["models"]
        return {(model["name"], model["version"]) for model in models}

    shelf.put("2")
    shelf.label(stable="2")
    shutil.copytree(versions.parent / "other", shelf.folder / "other" / "1")
    client.run(reload_all)
    assert found() == {("tiny", "2"), ("other", "1")}
    shelf.label(stable="9")
    shutil.rmtree(shelf.folder / "other")
    client.run(reload_all)
    assert found() == {("tiny", "2")}
    lines = [record.getMessage() for record in caplog.records if record.name == "api.listener.reloading"]
    assert any(line.startswith("SIGHUP: models unchanged: tiny: ") for line in lines)


# === Signatures ===


@pytest.fixture
def release(tmp_path_factory) -> Path:
    """A private key; its public key is in `.pub` and in `trusted.pem`."""
    private = tmp_path_factory.mktemp("keys") / "release.key"
    shown, _ = generate_key_pair(private)
    shutil.copy(shown, private.with_name("trusted.pem"))
    return private


def sign(folder: Path, private: Path) -> str:
    return write_signature(folder, open_artifact(folder).content, read_private_key(private))


@pytest.fixture
def signed(shelf, release) -> Iterator[ServiceClient]:
    """A service that trusts one key."""
    sign(shelf.folder / "tiny" / "1", release)
    keys = release.with_name("admin.keys")
    keys.write_text(LINE)
    settings = Settings(
        models=shelf.folder,
        batch_sizes=(1,),
        admin_keys=keys,
        require_signature=release.with_name("trusted.pem"),
    )
    with ServiceClient(create_app(settings)) as client:
        yield client


def test_service_does_not_start_with_an_unsigned_model(shelf, release):
    settings = Settings(
        models=shelf.folder, batch_sizes=(1,), require_signature=release.with_name("trusted.pem")
    )
    with pytest.raises(ArtifactError, match="is not signed"), ServiceClient(create_app(settings)):
        pytest.fail("it must not serve")


def test_trusted_keys_change_without_a_restart(signed, shelf, release):
    second = release.with_name("second.key")
    generate_key_pair(second)
    sign(shelf.put("2"), second)
    shelf.label(stable="2")
    assert "unknown keys" in reload(signed).json()["detail"]
    trusted = release.with_name("trusted.pem")
    shown = [key.with_suffix(".pub").read_bytes() for key in (release, second)]
    trusted.write_bytes(b"".join(shown))
    assert reload(signed).json()["loaded"] == ["2"]
    trusted.write_bytes(shown[0])  # the second one was stolen: its signatures are not accepted any more
    assert "unknown keys" in reload(signed).json()["detail"]
