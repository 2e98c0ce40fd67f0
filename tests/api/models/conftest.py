import pytest

from api.app import create_app
from api.settings import Settings
from tests.api.conftest import ServiceClient
from tests.api.models.stub_models import NAME, StubModels

ADMIN = {"X-API-Key": "admin"}


def ask(client, what, body=None):
    words = {} if body is None else {"json": body}
    return client.post(f"/v1/admin/models/{NAME}/{what}", headers=ADMIN, **words)


def served(client):
    models = client.get("/v1/models").json()["models"]
    return {model["version"]: model["aliases"] for model in models}


@pytest.fixture
def shelf(tmp_path, monkeypatch) -> StubModels:
    """A folder of models with version 1 of one model."""
    shelf = StubModels(tmp_path / "models", monkeypatch)
    shelf.put("1")
    return shelf


@pytest.fixture
def start(shelf, key_files):
    """Starts a service that serves the shelf."""

    def start_one(**settings):
        words = {
            "models": shelf.folder,
            "batch_sizes": (1,),
            "admin_keys": key_files["admin_keys"],
            **settings,
        }
        return ServiceClient(create_app(Settings(**words)))

    return start_one


@pytest.fixture
def client(start):
    with start() as client:
        yield client
