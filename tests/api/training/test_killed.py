"""SIGKILL of the service while a worker uploads a model, and while an engineer puts it into use."""

import shutil
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import select

from api.training.tables import training_chunks, training_jobs
from segdec.artifact import open_artifact
from tests.api.conftest import problem
from tests.api.training.training_service import JOBS, TrainingService

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
UPLOAD = [
    ("api.record.storage.pictures:FolderPictures.put", 2, "before"),
    ("api.record.storage.pictures:FolderPictures.put", 2, "after"),
    ("api.training.training_store:store_with_rows", 2, "after"),
    ("api.training.worker_routes:file_sets.store_files", 1, "before"),
    ("api.training.worker_routes:file_sets.store_files", 1, "after"),
    ("api.training.worker_routes:leases.end_lease", 1, "after"),
]
USE = [
    ("api.training.result_model:_append", 2, "before"),
    ("api.training.result_model:check_model", 1, "after"),
    ("api.training.model_deployment:set_candidate", 1, "before"),
    ("api.training.model_deployment:_note_use", 1, "before"),
]


def kill(tmp_path, model, job_id, place):
    """Starts the service as a process that is killed at this place."""
    words = [tmp_path / "record", tmp_path / "models", model, job_id, *place]
    command = [sys.executable, "-m", "tests.api.training.killed_service", *map(str, words)]
    ended = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def expire_leases(connection):
    """Lets the time of all leases pass."""
    connection.execute(training_jobs.update().values(leased_until=training_jobs.c.created_at))


def list_chunks(connection):
    return {row.hex() for row in connection.execute(select(training_chunks.c.sha256)).scalars()}


def stored_chunks(folder):
    """Names and contents of the chunks in the store; nothing else may be in it."""
    assert list((folder / "training" / "unsettled").iterdir()) == []
    return {path.name: path.read_bytes() for path in (folder / "training").glob("??/*")}


def served(service):
    found = service.get("/v1/models").json()["models"]
    return {(model["name"], model["version"]): model["aliases"] for model in found}


@pytest.mark.parametrize("place", UPLOAD, ids=lambda place: " ".join(map(str, place)))
def test_a_model_whose_upload_was_killed_is_not_offered_and_is_sent_again(
    tmp_path, models, make_model, place
):
    model = make_model("parts", "2")
    with TrainingService(tmp_path / "record", models) as service:
        job_id = service.order(service.fill(), model="parts")
    kill(tmp_path, model, "", place)
    with TrainingService(tmp_path / "record", models) as service:
        assert service.show(job_id)["state"] == "leased"
        assert problem(service.post(f"{JOBS}/{job_id}/use")) == (409, "job_not_done")
        assert served(service) == {("parts", "1"): ["stable"]}
        store = service.features.training
        service.run(lambda: store.write(expire_leases))
        shutil.rmtree(tmp_path / f"result-{job_id}")
        service.send_model(model)
        rows = service.run(lambda: store.read(list_chunks))
        assert service.post(f"{JOBS}/{job_id}/use").status_code == 200
    stored = stored_chunks(tmp_path / "record")
    assert set(stored) == rows
    assert all(sha256(data).hexdigest() == name for name, data in stored.items())
    open_artifact(models / "parts" / "2").check_files()


@pytest.mark.parametrize("place", USE, ids=lambda place: " ".join(map(str, place)))
def test_a_model_whose_use_was_killed_is_whole_or_absent_and_is_used_again(
    tmp_path, models, make_model, place
):
    with TrainingService(tmp_path / "record", models) as service:
        service.data_set = service.fill()
        job_id = service.finish_job("parts", make_model("parts", "2"))
    kill(tmp_path, "", job_id, place)
    for folder in (models / "parts").glob("[0-9]*"):
        open_artifact(folder).check_files()
    with TrainingService(tmp_path / "record", models) as service:
        assert set(served(service)) <= {("parts", "1"), ("parts", "2")}
        assert "stable" in served(service)["parts", "1"]
        assert service.show(job_id)["used"] is None
        assert service.post(f"{JOBS}/{job_id}/use").status_code == 200
        assert served(service) == {("parts", "1"): ["stable"], ("parts", "2"): ["candidate"]}
    assert sorted(path.name for path in (models / "parts").iterdir()) == ["1", "2", "aliases.json"]


def test_a_damaged_model_is_never_in_the_folder_of_models(tmp_path, models, make_model):
    """Neither is it served, nor does it prevent the next start."""
    with TrainingService(tmp_path / "record", models) as service:
        service.data_set = service.fill()
        job_id = service.finish_job("brackets", make_model("brackets", "1"), damage=True)
    kill(tmp_path, "", job_id, ("api.training.result_model:check_model", 1, "before"))
    assert not (models / "brackets" / "1").exists()
    with TrainingService(tmp_path / "record", models) as service:
        assert served(service) == {("parts", "1"): ["stable"]}
        assert problem(service.post(f"{JOBS}/{job_id}/use")) == (422, "unusable_model")
    assert not (models / "brackets" / "1").exists()
