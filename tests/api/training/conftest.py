import shutil
from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from sqlalchemy import insert

from api.data_sets.definitions import create_data_set
from api.data_sets.tables import data_set_files
from api.database.database import write_transaction
from api.inference.network_cost import NetworkCost
from api.models import loader
from api.record.storage.pictures import FolderPictures
from api.record.stored_files import check_same_record
from api.record.tables import store
from api.training.job_view import show_job
from api.training.jobs import create_job
from api.training.leases import end_lease, lease_job, renew_lease
from api.training.schemas import Heartbeat, NewTrainingJob
from api.training.workers import SentLease, Worker
from segdec import __version__
from segdec.artifact import write_artifact
from segdec.training_schemas import LeasedJob
from tests.api.conftest import StubPredictor
from tests.api.data_sets.filled_data_set import CLASSES, NOW, FilledDataSet, mask_of
from tests.api.training.training_service import TrainingService
from tests.segdec.artifact.test_artifact import build

WORKER = Worker("gpu-1", "key of gpu-1", __version__, {"gpus": "1"})
PROGRESS = {"phase": "training", "step": 7}


def fill(engine, stored):
    """Makes a data set with a version: a good photograph, and one with a scratch and an ignored area."""
    with write_transaction(engine) as connection:
        connection.execute(insert(store), {"id": "the record", "bytes": 0})
        check_same_record(connection, stored, data_set_files)
        number = create_data_set(connection, "Brackets", CLASSES, "Ada", NOW)
    filled = FilledDataSet(engine, stored, number)
    filled.annotate(filled.add(1).id, "good")
    filled.annotate(filled.add(2).id, "scratch", mask_of((1, 4, 4), (255, 20, 20)))
    filled.make_version()
    return filled


class Jobs:
    """The jobs of a database; the time passes only by `wait`. Workers report with the key of their lease."""

    def __init__(self, engine, data_set):
        self.engine, self.data_set, self.now = engine, data_set, NOW
        self.keys = {}

    def wait(self, seconds):
        self.now += timedelta(seconds=seconds)

    def do(self, change, *args, **words):
        """Makes a change."""
        with write_transaction(self.engine) as connection:
            return change(connection, *args, **words)

    def read(self, query, *args):
        with self.engine.connect() as connection:
            return query(connection, *args)

    def order(self, model="brackets", used=(), **settings):
        """Orders a job; returns its id."""
        new = NewTrainingJob(data_set=self.data_set, data_set_version=1, model=model, **settings)
        return self.do(create_job, new, used, "Ada", self.now)

    def lease(self, worker=WORKER):
        leased = self.do(lease_job, worker, self.now)
        self.keys |= {leased.lease: worker.key} if isinstance(leased, LeasedJob) else {}
        return leased

    def sent(self, lease):
        """Returns a lease as a request names it."""
        return SentLease(lease, self.keys[lease])

    def show(self, job_id):
        return self.read(show_job, job_id, self.now)

    def renew(self, job_id, lease, progress=PROGRESS, events=()):
        report = Heartbeat(is_training=True, progress=progress, events=events)
        return self.do(renew_lease, job_id, self.sent(lease), report, self.now)

    def beat(self, job_id, lease, **report):
        """Renews a lease; returns what the worker must do."""
        return self.renew(job_id, lease, **report).command

    def end(self, job_id, lease, outcome, reason="", facts=None):
        self.do(end_lease, job_id, self.sent(lease), outcome, reason, self.now, facts)


@pytest.fixture
def database_url(request, make_database_url, tmp_path):
    """Of a database without rows: SQLite, except in tests of `both_databases`."""
    return make_database_url(getattr(request, "param", "sqlite"), tmp_path)


@pytest.fixture
def jobs(engine, tmp_path):
    return Jobs(engine, fill(engine, FolderPictures(tmp_path / "data_sets")).id)


@pytest.fixture(scope="session")
def make_model(make_once):
    """Returns the folder of a model with this name and version; see `models`."""

    def make(name, version):
        named = {"name": name, "version": version}
        fill = lambda folder: write_artifact(folder, lambda staged: build(staged).model_copy(update=named))  # noqa: E731
        return make_once(f"model-{name}-{version}", fill)

    return make


def load_stub(*_args, **_words):
    predictor = StubPredictor()
    predictor.notes = ()
    return predictor


def replace_networks(patch):
    """Lets a stub be the network of all models."""
    patch.setattr(loader, "Predictor", SimpleNamespace(from_artifact=load_stub))
    patch.setattr(loader, "run_self_test", lambda *_: None)
    patch.setattr(loader, "measure_cost", AsyncMock(return_value=NetworkCost()))
    patch.setattr(loader, "gc", SimpleNamespace(collect=lambda: 0))


@pytest.fixture
def models(tmp_path, make_model, monkeypatch):
    """A folder with version 1 of `parts`, without aliases. A stub is the network of all models."""
    replace_networks(monkeypatch)
    shutil.copytree(make_model("parts", "1"), tmp_path / "models" / "parts" / "1")
    return tmp_path / "models"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with a data set that all tests of a module share."""
    with TrainingService(tmp_path_factory.mktemp("record")) as client:
        client.data_set = client.fill()
        yield client
