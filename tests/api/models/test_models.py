import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from api.errors import RequestError
from api.models.registry import ModelRegistry, ServedModel
from api.models.store import ModelFolder, SingleModel, open_store
from api.settings import Settings
from segdec.errors import ArtifactError, ConfigError
from segdec.schemas import ModelIdentity

# === Registry ===


@pytest.fixture
def serve_models(predictor) -> Callable[..., ModelRegistry]:
    """Makes a registry of models with versions and aliases: `{"bolt": {"1": ("stable",)}}`."""

    def make(models: dict[str, dict[str, tuple[str, ...]]], default: str | None = None) -> ModelRegistry:
        registry = ModelRegistry(default)
        for name, versions in models.items():
            served = {}
            for version, aliases in versions.items():
                identity = ModelIdentity(name=name, version=version, sha256=None)
                served[version] = ServedModel(identity, aliases, predictor)
            registry.replace(name, served)
        return registry

    return make


BOLTS = {"bolt": {"1": (), "2": ("stable",), "3": ("canary",)}}


@pytest.mark.parametrize(
    ("asked", "found"), [((), "2"), (("bolt",), "2"), (("bolt", "1"), "1"), (("bolt", "canary"), "3")]
)
def test_model_is_found_by_name_version_and_alias(serve_models, asked, found):
    assert serve_models(BOLTS).find(*asked).identity.version == found


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        (("nut",), "model_not_found", "Expected one of: 'bolt'"),
        (("bolt", "4"), "version_not_found", "'1', '2', '3', 'stable', 'canary'"),
    ],
)
def test_unknown_model_names_the_known_ones(serve_models, asked, code, words):
    with pytest.raises(RequestError, match=words) as caught:
        serve_models(BOLTS).find(*asked)
    assert (caught.value.status, caught.value.code) == (404, code)


def test_request_without_a_name_needs_a_default(serve_models):
    models = {"bolt": {"1": ("stable",)}, "nut": {"7": ("stable",)}}
    with pytest.raises(RequestError, match="'bolt', 'nut'"):
        serve_models(models).find()
    assert serve_models(models, default="nut").find().identity.version == "7"


@pytest.mark.anyio
async def test_replaced_model_is_unused_after_its_last_request(serve_models):
    model = serve_models(BOLTS).find()
    with model.usage:
        with model.usage:
            draining = asyncio.create_task(model.wait_until_unused())
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not draining.done()
    await draining


# === Store ===


@pytest.fixture
def folder(tiny_artifact, tmp_path) -> Path:
    """A folder of models with the tiny artifact as `tiny/1`."""
    shutil.copytree(tiny_artifact, tmp_path / "tiny" / "1")
    return tmp_path


def write_aliases(folder: Path, content: object) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "tiny" / "aliases.json").write_text(text)


def test_newest_version_is_stable_without_aliases(folder):
    stored = ModelFolder(folder).find("tiny")
    assert ModelFolder(folder).names() == ["tiny"]
    assert (dict(stored.versions), dict(stored.aliases)) == ({"1": folder / "tiny" / "1"}, {"stable": "1"})


def test_aliases_choose_the_versions(folder, monkeypatch):
    monkeypatch.setattr("api.models.store._check_identity", lambda *_: None)
    for version in ("2", "3", "10", "draft", "²", "٣"):
        shutil.copytree(folder / "tiny" / "1", folder / "tiny" / version)
    assert ModelFolder(folder).find("tiny").aliases == {"stable": "10"}  # the newest
    write_aliases(folder, {"stable": "1", "canary": "3"})
    stored = ModelFolder(folder).find("tiny")
    assert list(stored.versions) == ["1", "3"]
    assert stored.aliases == {"stable": "1", "canary": "3"}


@pytest.mark.parametrize(
    ("aliases", "words"),
    [
        ({"stable": "7"}, "version '7', which does not exist. Expected one of: 1"),
        ({"stable": 1}, "not an object of aliases"),
        ({"stabel": "1"}, "has no alias 'stable'"),
        ("{", "cannot be read"),
    ],
)
def test_wrong_aliases_say_what_to_do(folder, aliases, words):
    write_aliases(folder, aliases)
    with pytest.raises(ArtifactError, match=words):
        ModelFolder(folder).find("tiny")


def test_artifact_in_another_folder_than_its_name_is_refused(folder):
    (folder / "tiny" / "1").rename(folder / "tiny" / "5")
    with pytest.raises(ArtifactError, match=r"tiny/1.*--version 5"):
        ModelFolder(folder).find("tiny")


@pytest.mark.parametrize("name", ["..", "", "nothing", "tiny/1", "\0"])
def test_unknown_names_find_nothing(folder, name):
    assert ModelFolder(folder).find(name) is None


def test_a_model_directly_below_its_name_is_served_beside_versions(tiny_artifact, tmp_path):
    flat = shutil.copytree(tiny_artifact, tmp_path / "tiny")
    store = ModelFolder(tmp_path)
    assert (store.names(), store.unserved()) == (["tiny"], [])
    assert store.find("tiny").versions == {"1": flat}
    (flat / "2").mkdir()
    (flat / "2" / "manifest.json").write_text("{}")
    write_aliases(tmp_path, {"stable": "1"})
    assert store.find("tiny").versions == {"1": flat}
    (flat / "2").rename(flat / "1")
    with pytest.raises(ArtifactError, match="both have version 1"):
        store.find("tiny")


def test_models_that_are_not_served_are_named(folder, tiny_artifact):
    shutil.copytree(tiny_artifact, folder / "tiny_2")
    shutil.copytree(tiny_artifact, folder / ".tiny")
    store = ModelFolder(folder)
    assert store.names() == ["tiny"]
    (reason,) = store.unserved()
    assert f"tiny_2 has version 1 of tiny: move it to {folder / 'tiny' / '1'}" in reason
    for place, words in (
        (tiny_artifact, "itself a model: serve it with --model"),
        (folder / "tiny", f"--models {folder}"),
    ):
        with pytest.raises(ConfigError, match=words):
            ModelFolder(place).names()


@pytest.mark.parametrize("name", ["Gehäuse 3+4", "a"])
def test_names_may_have_any_characters_of_a_folder(folder, monkeypatch, name):
    monkeypatch.setattr("api.models.store._check_identity", lambda *_: None)
    (folder / "tiny").rename(folder / name)
    store = ModelFolder(folder)
    assert [*store.find(store.names()[0]).versions] == ["1"]


def test_folder_without_models_is_refused_unless_it_may_be_empty(tmp_path):
    assert open_store(Settings(models=tmp_path / "new" / "models", allow_no_model=True)).names() == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be created"):
        open_store(Settings(models=tmp_path / "file", allow_no_model=True))
    tmp_path = tmp_path / "new"
    with pytest.raises(ConfigError, match="NAME/VERSION"):
        ModelFolder(tmp_path).names()
    with pytest.raises(ConfigError, match="cannot be read"):
        ModelFolder(tmp_path / "nowhere").names()


def test_single_model_has_the_name_of_its_manifest(tiny_artifact):
    store = SingleModel(tiny_artifact)
    assert store.names() == ["tiny"]
    assert store.find("tiny").versions == {"1": tiny_artifact}
    assert store.find("other") is None
