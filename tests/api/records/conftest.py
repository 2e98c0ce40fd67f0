import uuid

import pytest
from sqlalchemy import create_engine, text

from tests.api.records.databases import BINARIES, OwnPostgres
from tests.api.records.object_store import OwnObjectStore


@pytest.fixture(scope="session")
def postgres():
    if BINARIES is None:
        pytest.skip("no PostgreSQL: Debian's package postgresql has it")
    cluster = OwnPostgres()
    yield cluster
    cluster.remove()


@pytest.fixture(scope="session")
def make_database(postgres):
    """Makes an empty database of PostgreSQL and returns its URL."""

    def make() -> str:
        name = f"record_{uuid.uuid4().hex}"
        url = postgres.url.replace("postgresql", "postgresql+psycopg")
        admin = create_engine(url, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        admin.dispose()
        return postgres.url_of(name)

    return make


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """Of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/record.db"
    return request.getfixturevalue("make_database")()


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
