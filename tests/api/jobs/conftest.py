import pytest

from api.data_sets.definitions import create_data_set
from tests.api.data_sets.filled_data_set import NOW
from tests.api.jobs.trial_job import LocalRecord


@pytest.fixture
def record(engine):
    return LocalRecord(engine)


@pytest.fixture
def data_set(record):
    """The id of a data set."""
    return record.change(create_data_set, "Brackets", ["scratch"], "Ada", NOW)
