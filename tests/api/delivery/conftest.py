import pytest

from api.metrics import Metrics
from api.records.database import migrate, open_database
from tests.api.delivery.outbox_messages import EventSource


@pytest.fixture
def engine(tmp_path):
    """Of a record of today's form."""
    engine = open_database(f"sqlite:///{tmp_path}/record.db")
    migrate(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def each_engine(database_url):
    """The same, of both databases."""
    engine = open_database(database_url)
    migrate(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def metrics():
    return Metrics(lambda: 0, lambda: True)


@pytest.fixture
def line(engine):
    return EventSource(engine)
