import pytest

from tests.api.conftest import ServiceClient


@pytest.fixture
def folder(tmp_path):
    """Of a record."""
    return tmp_path / "record"


@pytest.fixture
def recorder(make_app, folder):
    """A client of a service that records."""
    with ServiceClient(make_app(record="required", record_folder=folder)) as client:
        yield client


@pytest.fixture
def role_keys(key_files):
    """Keys of the roles `api`, `review` and `admin`, named like them, and settings with their files."""
    return {key: key for key in ("api", "review", "admin")}, key_files
