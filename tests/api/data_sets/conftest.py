import contextlib
import io
import time
import uuid
from pathlib import Path

import pytest
from sqlalchemy import insert

from api.data_sets import archive_import, check_job
from api.data_sets.definitions import create_data_set
from api.data_sets.import_program import ERROR, read_cause
from api.data_sets.tables import data_set_files
from api.database.database import write_transaction
from api.messages.causes import JobError
from api.record.storage.pictures import FolderPictures
from api.record.stored_files import check_same_record
from api.record.tables import store
from datasets.__main__ import main
from tests.api.data_sets.filled_data_set import CLASSES, NOW, FilledDataSet
from tests.api.engineer_client import EngineerClient

SETS = "/v1/data-sets"


@pytest.fixture
def database_url(request, make_database_url, tmp_path):
    """Of a database without rows: SQLite, except in tests of `both_databases`."""
    return make_database_url(getattr(request, "param", "sqlite"), tmp_path)


@pytest.fixture(scope="module")
def engineer(tmp_path_factory):
    """A client of a service that all tests of a module share."""
    with EngineerClient(tmp_path_factory.mktemp("record")) as client:
        yield client


@pytest.fixture
def create(engineer):
    """Creates a data set; returns its path."""

    def create_one(name=None, classes=CLASSES):
        answer = engineer.post(SETS, json={"name": name or uuid.uuid4().hex, "classes": classes})
        assert answer.status_code == 201, answer.text
        return f"{SETS}/{answer.json()['id']}"

    return create_one


@pytest.fixture
def path(create):
    """The path of a new data set."""
    return create()


@pytest.fixture
def wait_for(engineer):
    """Returns the answer about a job, at this path, when it has ended."""
    return lambda path: wait_for_job(engineer, path)


def wait_for_job(client, path):
    """As `wait_for`, of the service of this client."""
    for _ in range(3000):
        job = client.get(path).json()
        if job["state"] != "running":
            return job
        time.sleep(0.1)
    raise AssertionError(job)


@pytest.fixture
def stored(tmp_path):
    """The store of files."""
    return FolderPictures(tmp_path / "data_sets")


@pytest.fixture
def filled(engine, stored):
    """A data set with the classes `scratch` and `dent`, without photographs."""
    with write_transaction(engine) as connection:
        connection.execute(insert(store), {"id": "the record", "bytes": 0})
        check_same_record(connection, stored, data_set_files)
        number = create_data_set(connection, "Brackets", CLASSES, "Ada", NOW)
    return FilledDataSet(engine, stored, number)


@pytest.fixture
def program_in_this_process(monkeypatch):
    """Saves the start of processes; `test_import_program` has them."""

    async def run(folder, _limits, *arguments):
        printed = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stderr(printed):
            try:
                main(["--error", ERROR, *arguments])
            except SystemExit:
                text = printed.getvalue().rpartition("error: ")[2].strip()
                raise JobError(text, read_cause(Path(ERROR))) from None
        lines = printed.getvalue().splitlines()
        return [line.partition(": ")[2] for line in lines if line.startswith(("note: ", "warning: "))]

    for module in (archive_import, check_job):
        monkeypatch.setattr(module, "run_datasets", run)
