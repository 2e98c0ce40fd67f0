"""What the service imports: packages of the group `record` only for a record, TensorFlow only for a model."""

import subprocess
import sys
from pathlib import Path

import pytest

from api.delivery.receivers import Receivers
from api.metrics import Metrics
from api.record.recording import explain_missing_group
from api.service import create_features
from api.settings import Settings
from segdec.errors import MissingExtraError

ROOT = Path(__file__).parents[3]
MESSAGE = (
    "The package '{}' is not installed. Install the group 'record', in the checkout and with pip 25.1 or "
    "newer: pip install -e . --group record"
)
CODE = """
import logging
import sys
from pathlib import Path
import api.listener.server
from api.app import create_app
from api.metrics import Metrics
from api.delivery.receivers import Receivers
from api.service import create_features
from api.settings import Settings
settings, metrics = Settings(model=Path("model")), Metrics(lambda: 0, lambda: True)
create_app(settings), create_features(settings, metrics, Receivers())
print({"sqlalchemy", "alembic", "psycopg", "obstore", "pyarrow", "tensorflow", "keras"} & set(sys.modules))
print(logging.getLogger().handlers)
sys.modules["sqlalchemy"] = None
try:
    create_features(Settings(model=Path("model"), record="required"), metrics, Receivers())
except Exception as error:
    print(error)
"""


def test_packages_of_the_group_are_imported_only_for_a_record():
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == (f"set()\n[]\n{MESSAGE.format('sqlalchemy')}\n", "")


def test_the_error_about_a_missing_driver_names_the_group(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    database = "postgresql://segdec@nowhere/segdec"
    settings = Settings(model=Path("model"), record="required", record_database=database)
    with pytest.raises(MissingExtraError) as caught:
        create_features(settings, Metrics(lambda: 0, lambda: True), Receivers())
    assert str(caught.value) == MESSAGE.format("psycopg")


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'api.gone'", name="api.gone"),
        ImportError("cannot import name 'gone' from 'segdec.errors'", name="segdec.errors"),
        MissingExtraError("pillow", "images"),
    ],
)
def test_other_errors_are_not_reported_as_missing_packages_of_the_record(error):
    with pytest.raises(ImportError) as caught, explain_missing_group():
        raise error
    assert caught.value is error
