import uuid

import pytest
from sqlalchemy import create_engine, text

from tests.api.records.databases import BINARIES, OwnPostgres


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    if BINARIES is None:
        pytest.skip("no PostgreSQL: Debian's package postgresql has it")
    cluster = OwnPostgres(tmp_path_factory.mktemp("cluster") / "postgres")
    yield cluster
    cluster.stop("immediate")


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """Of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/record.db"
        return
    cluster = request.getfixturevalue("postgres")
    name = f"record_{uuid.uuid4().hex}"
    admin = create_engine(
        cluster.url.replace("postgresql", "postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    admin.dispose()
    yield cluster.url_of(name)
