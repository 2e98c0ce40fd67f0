"""Aliases whose version is missing or damaged: only the stable version is needed."""

import shutil

import pytest

from api.models import loader
from segdec.errors import ArtifactError
from tests.api.models.conftest import ask, served
from tests.api.models.stub_models import NAME


def change(client, what, body=None):
    return ask(client, what, body).status_code


@pytest.fixture(params=["missing", "no manifest", "fails", "another model"])
def damage(request, shelf, monkeypatch):
    """Damages version 2."""
    shelf.put("2")

    def check(folder, *_):
        if request.param == "another model" and folder.name == "2":
            raise ArtifactError(f"{folder} has version 2 of something else.")

    monkeypatch.setattr("api.models.store._check_identity", check)

    def make():
        if request.param == "missing":
            shutil.rmtree(shelf.folder / NAME / "2")
        elif request.param == "no manifest":
            (shelf.folder / NAME / "2" / "manifest.json").unlink()
        else:
            shelf.broken.add("2")

    return make


@pytest.mark.parametrize("alias", ["previous", "canary"])
def test_the_service_starts_without_a_version_that_is_not_stable(start, shelf, caplog, damage, alias):
    damage()
    shelf.set_aliases(**{"stable": "1", alias: "2"})
    with start() as client:
        assert served(client) == {"1": ["stable"]}
        assert change(client, "reload") == (200 if alias == "previous" else 422)
        shelf.put("3")
        assert change(client, "candidate", {"version": "3"}) == 200
        assert change(client, "promote") == 200
        assert served(client) == {"3": ["stable"], "1": ["previous"]}
    (first, *_) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert f"the alias '{alias}' is not served" in first


def test_the_stable_version_is_needed(start, shelf, damage):
    damage()
    shelf.set_aliases(stable="2", previous="1")
    with pytest.raises(loader.ArtifactError), start():
        pytest.fail("it must not serve")


def test_a_deleted_stable_version_becomes_no_previous_one(client, shelf):
    shelf.put("2")
    change(client, "candidate", {"version": "2"})
    shutil.rmtree(shelf.folder / NAME / "1")
    assert change(client, "promote") == 200
    assert served(client) == {"2": ["stable"]}
    assert change(client, "rollback") == 404
    assert served(client) == {"2": ["stable"]}


def test_an_alias_without_a_version_is_ignored(start, shelf):
    shelf.set_aliases(stable="1", previous=None)
    with start() as client:
        assert served(client) == {"1": ["stable"]}
