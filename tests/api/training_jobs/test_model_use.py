"""The model of a finished job is put into the folder of models and served."""

import json
import shutil

import pytest

from segdec import __version__
from tests.api.routes.conftest import problem
from tests.api.training_jobs.training_service import JOBS, TrainingService
from training.worker.file_sets import upload_files
from training.worker.service_connection import WorkerIdentity

pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def make_model(request, make_once, tensorflow_devices, tiny_config):  # noqa: ARG001
    """Returns the tiny network as a model with this name and version."""
    from segdec.export.model_export import ModelCard, export_model

    def make(name, version):
        card = ModelCard(name, version, {"average_precision": 0.5}, "test", data_fingerprint="0" * 64)
        network = request.getfixturevalue("tiny_network")
        fill = lambda folder: export_model(network, folder, tiny_config, card)  # noqa: E731
        return make_once(f"model-{name}-{version}", fill)

    return make


@pytest.fixture
def models(tmp_path, make_model):
    """A folder with version 1 of `parts`, without labels."""
    shutil.copytree(make_model("parts", "1"), tmp_path / "models" / "parts" / "1")
    return tmp_path / "models"


@pytest.fixture
def service(tmp_path, models):
    with TrainingService(tmp_path / "record", models) as client:
        client.data_set = client.fill()
        yield client


def finish(service, model, folder, damage=False):
    """Orders a job and uploads a model as its result; returns its id."""
    job_id = service.order(service.data_set, model=model)
    with service.connect() as worker:
        job = worker.lease(WorkerIdentity("gpu-1", __version__, {}))
        copy = service.app.state.settings.record_folder.parent / f"result-{job_id}"
        shutil.copytree(folder, copy / "model")
        if damage:
            changed = next(path for path in (copy / "model" / "tensorflow").rglob("*.pb"))
            changed.write_bytes(changed.read_bytes() + b"x")
        paths = sorted(path for path in copy.rglob("*") if path.is_file())
        worker.send_result(job, upload_files(worker, job, copy, paths, lambda: None))
        worker.end(job, "done", "", {})
    return job_id


def labels(service):
    found = service.get("/v1/models").json()["models"]
    return {(model["name"], model["version"]): model["labels"] for model in found}


def test_a_further_version_becomes_the_candidate(service, models, make_model):
    job_id = finish(service, "parts", make_model("parts", "2"))
    assert service.show(job_id)["version"] == "2"
    answer = service.post(f"{JOBS}/{job_id}/use")
    assert answer.status_code == 200, answer.text
    assert json.loads((models / "parts" / "labels.json").read_text()) == {"stable": "1", "candidate": "2"}
    assert labels(service) == {("parts", "1"): ["stable"], ("parts", "2"): ["candidate"]}
    shown = service.show(job_id)
    assert shown["used"]["who"] == "ada"
    assert service.texts(job_id)[-1] == "ada put the model into use, as candidate."
    used, candidate = service.get("/v1/audit").json()["changes"][:2]
    assert (used["what"], candidate["what"], used["who"]) == ("use a trained model", "candidate", "ada")
    assert used["after"] == {"job": job_id, "model": "parts", "version": "2", "label": "candidate"}
    assert problem(service.post(f"{JOBS}/{job_id}/use")) == (409, "version_exists")


def test_a_model_that_was_written_before_a_kill_is_used(service, models, make_model):
    model = make_model("parts", "2")
    job_id = finish(service, "parts", model)
    shutil.copytree(make_model("parts", "1"), models / "parts" / "2")
    assert problem(service.post(f"{JOBS}/{job_id}/use")) == (409, "version_exists")  # another model
    shutil.rmtree(models / "parts" / "2")
    shutil.copytree(model, models / "parts" / "2")
    assert service.post(f"{JOBS}/{job_id}/use").status_code == 200
    assert labels(service)["parts", "2"] == ["candidate"]


def test_the_first_version_of_a_new_name_is_served_and_the_default_stays(service, make_model):
    job_id = finish(service, "brackets", make_model("brackets", "1"))
    assert service.post(f"{JOBS}/{job_id}/use").status_code == 200
    assert labels(service) == {("parts", "1"): ["stable"], ("brackets", "1"): ["stable"]}
    assert service.service.find_model().identity.name == "parts"
    assert service.texts(job_id)[-1] == "ada put the model into use, as stable."


@pytest.mark.parametrize("fault", ["damaged", "another version"])
def test_a_model_that_cannot_be_served_changes_nothing(service, models, make_model, fault):
    model = make_model("parts", "2" if fault == "damaged" else "1")
    job_id = finish(service, "parts", model, damage=fault == "damaged")
    assert problem(service.post(f"{JOBS}/{job_id}/use")) == (422, "unusable_model")
    assert sorted(path.name for path in (models / "parts").iterdir()) == ["1", "labels.json"]
    assert labels(service) == {("parts", "1"): ["stable"]}
    assert service.show(job_id)["used"] is None


def test_a_single_model_has_no_place_for_others(tmp_path, make_model):
    with TrainingService(tmp_path / "record") as service:
        service.data_set = service.fill()
        job_id = finish(service, "parts", make_model("parts", "1"))
        assert problem(service.post(f"{JOBS}/{job_id}/use")) == (409, "models_fixed")
