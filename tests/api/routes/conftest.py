import numpy as np
import pytest

from api.app import create_app
from api.settings import Settings
from segdec.images import encode_png
from tests.api.conftest import ServiceClient, StubPredictor
from tests.segdec.artifact.test_artifact import MANIFEST


def problem(answer):
    return answer.status_code, answer.json()["code"]


def know_training(predictor, grey_training):
    """Gives the stub grey training photographs of 32 × 48 px; returns one like them, and a black one."""
    predictor.config = MANIFEST.model_copy(
        update={"training_photographs": grey_training, "classes": predictor.config.classes}
    )
    return encode_png(np.full((32, 48, 1), 110, np.uint8)), encode_png(np.zeros((32, 48, 1), np.uint8))


@pytest.fixture
def folder(tmp_path):
    """Of a record."""
    return tmp_path / "record"


@pytest.fixture
def recorder(make_app, folder):
    """A client of a service that records."""
    with ServiceClient(make_app(record="required", record_folder=folder)) as client:
        yield client


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """A recorder that all tests of a module share."""
    settings = {"model": "unused", "record": "required", "record_folder": tmp_path_factory.mktemp("record")}
    with ServiceClient(create_app(Settings.model_validate(settings), StubPredictor())) as client:
        yield client


@pytest.fixture
def role_keys(key_files):
    """Keys of the roles `api`, `review` and `admin`, named like them, and settings with their files."""
    return {key: key for key in ("api", "review", "admin")}, key_files
