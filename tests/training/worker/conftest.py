import subprocess
import sys
from pathlib import Path

import pytest

from segdec import __version__
from segdec.training_schemas import WorkerIdentity
from tests.api.training.training_service import TRAIN_KEY, TrainingService
from training.worker import job_run
from training.worker.job_run import JobRun

IDENTITY = WorkerIdentity(name="gpu-1", version=__version__)
ROOT = Path(__file__).parents[3]


def stub_command(job, artifact, steps=10, fault=""):
    """Returns the command that stands for the training of a job."""
    return [sys.executable, str(Path(__file__).with_name("stub_trainer.py")), job.model, str(artifact)] + [
        str(word) for word in (steps, fault) if word
    ]


@pytest.fixture(scope="session")
def trained_model(request, make_once, tiny_config):
    """The tiny network as version 1 of `brackets`."""
    from segdec.export.model_export import ModelCard, export_model

    card = ModelCard("brackets", "1", {"average_precision": 0.5}, "test", data_fingerprint="0" * 64)
    return make_once(
        "brackets",
        lambda folder: export_model(request.getfixturevalue("tiny_network"), folder, tiny_config, card),
    )


@pytest.fixture
def service(tmp_path, monkeypatch):
    """A service with a data set; workers send a heartbeat at every opportunity."""
    for name in ("HEARTBEAT_S", "RETRY_S"):
        monkeypatch.setattr(job_run, name, 0.0)
    monkeypatch.setattr(job_run, "POLL_S", 0.05)
    with TrainingService(tmp_path / "record") as client:
        client.data_set = client.fill()
        yield client


@pytest.fixture
def begin_group(service):
    """Returns a job for two machines as its chief and the other member have leased it."""

    def begin():
        identities = [
            WorkerIdentity(name=f"gpu-{name}", version=__version__, address=f"gpu-{name}:2222")
            for name in "ab"
        ]
        with service.connect() as worker:
            for identity in identities:
                worker.lease(identity)
            service.order(service.data_set, machines=2)
            worker.lease(identities[1])
            return [worker.lease(identity) for identity in identities]

    return begin


@pytest.fixture
def work(service, tmp_path, trained_model):
    """Leases the next job and works on it until it ends; returns the job."""

    def work_once(*, steps=10, fault="", change=lambda _: None, is_stopping=lambda: False, signing_key=None):
        with service.connect(change=change) as worker:
            job = worker.lease(IDENTITY)
            JobRun(
                worker,
                job,
                tmp_path / "worker",
                signing_key,
                is_stopping,
                lambda job: stub_command(job, trained_model, steps, fault),
            ).run()
            return job

    return work_once


@pytest.fixture
def start_worker(tmp_path):
    """Starts `stub_worker.py` as a process: URL, name and further arguments → process."""
    running = []

    def start(url, name, *arguments):
        key = tmp_path / "key"
        key.write_text(TRAIN_KEY)
        command = [sys.executable, "-m", "tests.training.worker.stub_worker", url, key, tmp_path / name, name]
        running.append(subprocess.Popen([str(word) for word in (*command, *arguments)], cwd=ROOT))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()
