"""A service without the packages of the group `record`: recording needs them, serving does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api.metrics import Metrics
from api.records.recording import create_recording
from api.settings import Settings
from segdec.artifact import MANIFEST
from segdec.errors import MissingExtraError
from tests.marks import slow_case

ROOT = Path(__file__).parents[3]
MESSAGE = (
    "The package '{}' is not installed. Install the group 'record', in the checkout and with pip 25.1 or "
    "newer: pip install -e . --group record"
)


def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEGDEC_")}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def models(tmp_path):
    """A folder with an empty manifest: missing packages are reported before a model is loaded."""
    (tmp_path / "parts" / "1").mkdir(parents=True)
    (tmp_path / "parts" / "1" / MANIFEST).touch()
    return tmp_path


@pytest.mark.parametrize("package", ["sqlalchemy", slow_case("alembic")])
def test_the_start_error_names_the_group(models, package):
    without = f"import runpy, sys; sys.modules['{package}'] = None; sys.modules['tensorflow'] = None; "
    done = run(
        f"{without}runpy.run_module('api', run_name='__main__', alter_sys=True)",
        *("--models", str(models), "--port", "0", "--record", "required"),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert MESSAGE.format(package) in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_error_about_a_missing_driver_names_the_group(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    settings = Settings(
        models=models, record="required", record_database="postgresql://segdec@nowhere/segdec"
    )
    with pytest.raises(MissingExtraError) as caught:
        create_recording(settings, Metrics(lambda: 0, lambda: True))
    assert str(caught.value) == MESSAGE.format("psycopg")


def test_without_a_record_no_package_of_the_group_is_imported():
    code = (
        "import sys; from pathlib import Path; from api.app import create_app; "
        "from api.metrics import Metrics; "
        "from api.records.recording import create_recording; from api.settings import Settings; "
        "settings = Settings(model=Path('model')); assert settings.record == 'off'; "
        "create_app(settings); create_recording(settings, Metrics(lambda: 0, lambda: True)); "
        "print({'sqlalchemy', 'alembic', 'psycopg', 'obstore', 'pyarrow'} & set(sys.modules))"
    )
    done = run(code)
    assert (done.stdout, done.stderr) == ("set()\n", "")
