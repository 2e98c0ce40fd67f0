import uuid

import pytest
from sqlalchemy import create_engine, text

from tests.api.records.databases import BINARIES, OwnPostgres


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
