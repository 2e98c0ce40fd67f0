"""The model of a finished job is put into the folder of models and served."""

import json
import shutil

import pytest

from api.training.training_store import FOLDER
from tests.api.conftest import problem
from tests.api.training.training_service import JOBS, TrainingService


@pytest.fixture
def service(tmp_path, models):
    with TrainingService(tmp_path / "record", models) as client:
        client.data_set = client.fill()
        yield client


def aliases(service):
    found = service.get("/v1/models").json()["models"]
    return {(model["name"], model["version"]): model["aliases"] for model in found}


def test_a_further_version_becomes_the_candidate(service, models, make_model):
    job_id = service.finish_job("parts", make_model("parts", "2"))
    assert service.show(job_id)["version"] == "2"
    answer = service.post(f"{JOBS}/{job_id}/use")
    assert answer.status_code == 200, answer.text
    assert json.loads((models / "parts" / "aliases.json").read_text()) == {"stable": "1", "candidate": "2"}
    assert aliases(service) == {("parts", "1"): ["stable"], ("parts", "2"): ["candidate"]}
    shown = service.show(job_id)
    assert shown["used"]["who"] == "ada"
    assert service.texts(job_id)[-1] == "ada put the model into use, as candidate."
    used, candidate = service.get("/v1/audit").json()["changes"][:2]
    assert (used["what"], candidate["what"], used["who"]) == ("use a trained model", "candidate", "ada")
    assert used["after"] == {"job": job_id, "model": "parts", "version": "2", "alias": "candidate"}
    assert problem(service.post(f"{JOBS}/{job_id}/use")) == (409, "version_exists")


def test_the_job_of_a_served_model_is_not_deleted(service, models, make_model):
    job_id = service.finish_job("parts", make_model("parts", "2"))
    path = f"{JOBS}/{job_id}"
    assert service.post(f"{path}/use").status_code == 200
    assert problem(service.delete(path)) == (409, "model_served")
    assert service.show(job_id)["state"] == "done"
    shutil.rmtree(models / "parts" / "2")
    (models / "parts" / "aliases.json").write_text('{"stable": "1"}')
    assert service.post("/v1/admin/models/parts/reload").status_code == 200
    answer = service.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert problem(service.delete(path)) == (404, "job_not_found")
    assert service.show(service.order(service.data_set, model="parts"))["version"] == "3"


def test_a_model_that_was_written_before_a_kill_is_used(service, models, make_model):
    model = make_model("parts", "2")
    job_id = service.finish_job("parts", model)
    shutil.copytree(make_model("parts", "1"), models / "parts" / "2")
    assert problem(service.post(f"{JOBS}/{job_id}/use")) == (409, "version_exists")  # another model
    shutil.rmtree(models / "parts" / "2")
    shutil.copytree(model, models / "parts" / "2")
    assert service.post(f"{JOBS}/{job_id}/use").status_code == 200
    assert aliases(service)["parts", "2"] == ["candidate"]


def test_the_first_version_of_a_new_name_is_served_and_the_default_stays(service, make_model):
    job_id = service.finish_job("brackets", make_model("brackets", "1"))
    assert service.post(f"{JOBS}/{job_id}/use").status_code == 200
    assert aliases(service) == {("parts", "1"): ["stable"], ("brackets", "1"): ["stable"]}
    assert service.service.find_model().identity.name == "parts"
    assert service.texts(job_id)[-1] == "ada put the model into use, as stable."


@pytest.mark.parametrize("fault", ["damaged", "another version"])
def test_a_model_that_cannot_be_served_changes_nothing(service, models, make_model, fault):
    model = make_model("parts", "2" if fault == "damaged" else "1")
    job_id = service.finish_job("parts", model, damage=fault == "damaged")
    assert problem(service.post(f"{JOBS}/{job_id}/use")) == (422, "unusable_model")
    assert sorted(path.name for path in (models / "parts").iterdir()) == ["1", "aliases.json"]
    assert aliases(service) == {("parts", "1"): ["stable"]}
    assert service.show(job_id)["used"] is None


@pytest.mark.parametrize("fault", ["damaged", "lost"])
def test_a_new_name_that_cannot_be_served_leaves_no_folder(service, models, make_model, tmp_path, fault):
    job_id = service.finish_job("brackets", make_model("brackets", "1"), damage=fault == "damaged")
    if fault == "lost":
        shutil.rmtree(tmp_path / "record" / FOLDER)
    expected = {"damaged": (422, "unusable_model"), "lost": (404, "file_lost")}
    assert problem(service.post(f"{JOBS}/{job_id}/use")) == expected[fault]
    assert [path.name for path in models.iterdir()] == ["parts"]


def test_a_single_model_has_no_place_for_others(tmp_path, make_model):
    with TrainingService(tmp_path / "record") as service:
        service.data_set = service.fill()
        job_id = service.finish_job("parts", make_model("parts", "1"))
        assert problem(service.post(f"{JOBS}/{job_id}/use")) == (409, "models_fixed")
