import shutil
from datetime import timedelta

import pytest
from sqlalchemy import insert

from api.data_sets.definitions import create_data_set
from api.data_sets.tables import data_set_files
from api.database.database import write_transaction
from api.record.storage.pictures import FolderPictures
from api.record.stored_files import check_same_record
from api.record.tables import store
from api.training.jobs import create_job
from api.training.leases import lease_job
from api.training.schemas import NewTrainingJob
from api.training.workers import Worker
from segdec import __version__
from tests.api.data_sets.filled_data_set import CLASSES, NOW, FilledDataSet, mask_of

WORKER = Worker("gpu-1", "key of gpu-1", __version__, {"gpus": "1"})


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
    """The jobs of a database; the time passes only by `wait`."""

    def __init__(self, engine, data_set):
        self.engine, self.data_set, self.now = engine, data_set, NOW

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
        return self.do(lease_job, worker, self.now)


@pytest.fixture
def jobs(engine, tmp_path):
    return Jobs(engine, fill(engine, FolderPictures(tmp_path / "data_sets")).id)


@pytest.fixture(scope="session")
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
