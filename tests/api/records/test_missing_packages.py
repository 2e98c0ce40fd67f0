"""A service without the packages of the group `record`: recording needs them, serving does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from api.metrics import Metrics
from api.records.recording import create_recording
from api.settings import Settings
from segdec.errors import MissingExtraError

ROOT = Path(__file__).parents[3]
MESSAGE = (
    "The package '{}' is not installed. Install the group 'record', in the checkout and with pip 25.1 or "
    "newer: pip install -e . --group record"
)
CODE = """
import sys
from pathlib import Path
from api.app import create_app
from api.metrics import Metrics
from api.records.recording import create_recording
from api.settings import Settings
settings, metrics = Settings(model=Path("model")), Metrics(lambda: 0, lambda: True)
create_app(settings), create_recording(settings, metrics)
print({"sqlalchemy", "alembic", "psycopg", "obstore", "pyarrow"} & set(sys.modules))
sys.modules["sqlalchemy"] = None
try:
    create_recording(Settings(model=Path("model"), record="required"), metrics)
except Exception as error:
    print(error)
"""


def test_packages_of_the_group_are_imported_only_for_a_record():
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == (f"set()\n{MESSAGE.format('sqlalchemy')}\n", "")


def test_the_error_about_a_missing_driver_names_the_group(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    database = "postgresql://segdec@nowhere/segdec"
    settings = Settings(model=Path("model"), record="required", record_database=database)
    with pytest.raises(MissingExtraError) as caught:
        create_recording(settings, Metrics(lambda: 0, lambda: True))
    assert str(caught.value) == MESSAGE.format("psycopg")
