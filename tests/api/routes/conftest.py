import pytest

from api.routes.keys import make_key
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
def role_keys(tmp_path):
    """Keys of the roles `api`, `review` and `admin`, named like them, and settings with their files."""
    secrets, files = {}, {}
    for role in ("api", "review", "admin"):
        secrets[role], text = make_key(role)
        files[f"{role}_keys"] = tmp_path / role
        files[f"{role}_keys"].write_text(text)
    return secrets, files
