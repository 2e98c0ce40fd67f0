import uuid

import pytest

from tests.api.records.object_store import OwnObjectStore


@pytest.fixture(scope="session")
def running_object_store():
    store = OwnObjectStore()
    yield store
    store.stop()


@pytest.fixture
def object_store(running_object_store, monkeypatch):
    """The object store, with its address and key in the environment."""
    for name, value in running_object_store.environment.items():
        monkeypatch.setenv(name, value)
    return running_object_store


@pytest.fixture
def bucket(object_store):
    """The name of an empty bucket."""
    name = f"bucket-{uuid.uuid4().hex}"
    object_store.make(name)
    return name
