from pathlib import Path

import pytest

from api.app import create_app
from api.routes.keys import make_key
from api.settings import Settings
from tests.api.conftest import ServiceClient
from tests.api.models.stub_models import StubModels

KEY, LINE = make_key("maintenance")
ADMIN = {"X-API-Key": KEY}


@pytest.fixture
def shelf(tmp_path, monkeypatch) -> StubModels:
    """A folder of models with version 1 of one model."""
    shelf = StubModels(tmp_path / "models", monkeypatch)
    shelf.put("1")
    return shelf


@pytest.fixture
def admin_keys(tmp_path) -> Path:
    """The file of the key in `ADMIN`."""
    (tmp_path / "admin").write_text(LINE)
    return tmp_path / "admin"


@pytest.fixture
def start(shelf, admin_keys):
    """Starts a service that serves the shelf."""

    def start_one(**settings):
        words = {"models": shelf.folder, "batch_sizes": (1,), "admin_keys": admin_keys, **settings}
        return ServiceClient(create_app(Settings(**words)))

    return start_one


@pytest.fixture
def client(start):
    with start() as client:
        yield client
