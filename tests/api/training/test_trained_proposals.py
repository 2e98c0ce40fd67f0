"""Labels proposed by the model of a finished training that is not in use."""

import shutil

import numpy as np
import pytest

from api.inference.memory_budget import MemoryBudget
from segdec.errors import ConfigError
from segdec.images import encode_png
from tests.api.conftest import problem
from tests.api.data_sets.filled_data_set import photograph_file
from tests.api.training.proposing_service import ProposingService
from tests.api.training.training_service import JOBS
from tests.segdec.artifact.test_artifact import rewrite


@pytest.fixture
def service(tmp_path, models):
    with ProposingService(tmp_path / "record", models) as client:
        client.data_set = client.fill()
        for number in (11, 12):
            client.add(f"new {number}", photograph_file(number).data)
        yield client


def choices(service):
    answer = service.get(f"{service.path}/proposals/models")
    assert answer.status_code == 200, answer.text
    names = ("model", "version", "training_job", "aliases")
    return [tuple(one[name] for name in names) for one in answer.json()["models"]]


def served(service):
    found = service.get("/v1/models").json()["models"]
    return [(model["name"], model["version"], model["aliases"]) for model in found]


def test_the_newest_training_proposes_without_being_served(service, make_model, tmp_path, models):
    assert choices(service) == [("parts", "1", None, ["stable"])]
    assert service.propose()["version"] == "1"
    first = service.finish_job("parts", make_model("parts", "2"))
    second = service.finish_job("parts", make_model("parts", "3"))
    assert choices(service) == [
        ("parts", "3", second, []),
        ("parts", "2", first, []),
        ("parts", "1", None, ["stable"]),
    ]
    before = [path.name for path in (models / "parts").iterdir()]
    done = service.propose()
    assert (done["state"], done["model"], done["version"], done["proposed"]) == ("done", "parts", "3", 2)
    leased = service.post(f"{service.path}/next", json={"session": "a tab", "count": 2}).json()
    assert {one["proposal"]["version"] for one in leased["photographs"]} == {"3"}
    assert service.propose(training_job=first)["version"] == "2"
    assert service.propose(model="parts", version="stable")["version"] == "1"
    assert served(service) == [("parts", "1", ["stable"])]
    assert [path.name for path in (models / "parts").iterdir()] == before
    assert list((tmp_path / "record" / "jobs").iterdir()) == [], "the unpacked models are removed"
    assert service.show(second)["used"] is None


def test_a_training_of_another_data_set_proposes_only_if_it_is_named(service, make_model):
    other = service.fill("Other parts")
    job_id = service.finish_job("parts", make_model("parts", "2"), data_set=other)
    assert choices(service) == [("parts", "1", None, ["stable"])]
    assert service.propose()["version"] == "1"
    assert service.propose(training_job=job_id)["version"] == "2"


def test_a_model_that_is_in_use_is_not_loaded_again(service, make_model, monkeypatch):
    job_id = service.finish_job("parts", make_model("parts", "2"))
    assert service.post(f"{JOBS}/{job_id}/use").status_code == 200
    assert choices(service) == [("parts", "2", job_id, ["candidate"]), ("parts", "1", None, ["stable"])]
    monkeypatch.setattr(service.service.loader, "_load_version", None)
    done = service.propose(training_job=job_id)
    assert (done["state"], done["version"]) == ("done", "2")


def test_the_memory_of_the_model_is_checked_and_released(service, make_model, monkeypatch):
    job_id = service.finish_job("parts", make_model("parts", "2"))
    checked = []

    def refuse(budget, network, pixels):
        checked.append((budget.idle_bytes > 0, network.base_bytes >= 0, pixels > 0))
        raise ConfigError("The memory of 1 MiB is too small for this model.")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryBudget, "check_model", refuse)
        done = service.propose(training_job=job_id)
    assert (done["state"], done["error"]) == ("failed", "The memory of 1 MiB is too small for this model.")
    assert checked == [(True, True, True)]
    measured = []
    monkeypatch.setattr(MemoryBudget, "measure_idle", lambda _: measured.append(True))
    assert service.propose(training_job=job_id)["state"] == "done"
    assert len(measured) == 2, "after the model was loaded, and after it was closed"


@pytest.mark.slow
def test_an_exported_network_proposes_and_becomes_the_candidate(tmp_path, tiny_artifact):
    """A real one, which says why it leaves out a photograph in colour."""
    shutil.copytree(tiny_artifact, tmp_path / "models" / "tiny" / "1")
    shutil.copytree(tiny_artifact, tmp_path / "trained")
    rewrite(tmp_path / "trained", version="2")
    with ProposingService(tmp_path / "record", tmp_path / "models") as service:
        service.data_set = service.fill()
        service.add("new", photograph_file(11).data)
        service.add("colour", encode_png(np.full((32, 48, 3), (200, 30, 30), np.uint8)))
        job_id = service.finish_job("tiny", tmp_path / "trained")
        done = service.propose()
        assert (done["state"], done["version"], done["proposed"], done["left_out"]) == ("done", "2", 1, 1)
        assert done["problem"].startswith("colour: The image has colour")
        assert service.post(f"{JOBS}/{job_id}/use").status_code == 200
        assert served(service) == [("tiny", "1", ["stable"]), ("tiny", "2", ["candidate"])]


def test_a_damaged_or_lost_model_fails_with_a_sentence_and_stays_unserved(service, make_model, tmp_path):
    damaged = service.finish_job("parts", make_model("parts", "2"), damage=True)
    other = service.finish_job("parts", make_model("parts", "1"))
    for job_id, text in ((damaged, "The worker sent a damaged model."), (other, "the job ordered parts 3.")):
        done = service.propose(training_job=job_id)
        assert (done["state"], done["proposed"]) == ("failed", 0)
        assert done["error"].endswith(text)
    shutil.rmtree(tmp_path / "record" / "training")
    done = service.propose(training_job=other)
    assert done["state"] == "failed" and "is lost: the store does not have it" in done["error"]
    assert served(service) == [("parts", "1", ["stable"])]
    assert list((tmp_path / "record" / "jobs").iterdir()) == []


def test_a_model_that_the_engine_cannot_run_fails_with_a_sentence(service, make_model, monkeypatch, caplog):
    job_id = service.finish_job("parts", make_model("parts", "2"))

    def fail(*_args, **_words):
        raise RuntimeError("of the engine")

    monkeypatch.setattr("api.models.loader.run_self_test", fail)
    done = service.propose(training_job=job_id)
    assert (done["state"], done["error"]) == (
        *("failed", "The model cannot be run here (RuntimeError); see the log of the service."),
    )
    assert "of the engine" in caplog.text


def test_hostile_requests_start_nothing(service):
    start = f"{service.path}/proposals"
    waiting = service.order(service.data_set)
    assert problem(service.post(start, json={"training_job": 999})) == (404, "job_not_found")
    assert problem(service.post(start, json={"training_job": waiting})) == (409, "job_not_done")
    job = {"training_job": waiting, "model": "parts"}
    assert problem(service.post(start, json=job)) == (400, "two_models")
    for wrong in (0, -1, 2**63, 1.5, "1", True, [1]):
        assert service.post(start, json={"training_job": wrong}).status_code == 400
    assert problem(service.get("/v1/data-sets/999/proposals/models")) == (404, "data_set_not_found")
    assert service.get(start).json() is None
