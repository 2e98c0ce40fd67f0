import uuid

import pytest

from api.records.database import migrate, open_database
from tests.api.records.object_store import OwnObjectStore


@pytest.fixture(scope="session")
def running_object_store():
    store = OwnObjectStore()
    yield store
    store.stop()


@pytest.fixture
def object_store(running_object_store, monkeypatch):
    """Is described by the environment."""
    for name, value in running_object_store.environment.items():
        monkeypatch.setenv(name, value)
    return running_object_store


@pytest.fixture
def bucket(object_store):
    """An empty one of its own."""
    name = f"bucket-{uuid.uuid4().hex}"
    object_store.make(name)
    return name


@pytest.fixture
def engine(database_url):
    """Of a record of today's form."""
    engine = open_database(database_url)
    migrate(engine)
    yield engine
    engine.dispose()
