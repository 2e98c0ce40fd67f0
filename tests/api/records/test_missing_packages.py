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


@pytest.mark.parametrize("package", ["psycopg", "sqlalchemy", "alembic"])
def test_the_error_about_a_missing_package_names_the_group(monkeypatch, package):
    for module in [name for name in sys.modules if name.startswith(("api.records.", package))]:
        if not module.endswith("recording"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    database = "postgresql://segdec@nowhere/segdec"
    settings = Settings(model=Path("model"), record="required", record_database=database)
    with pytest.raises(MissingExtraError) as caught:
        create_recording(settings, Metrics(lambda: 0, lambda: True))
    assert str(caught.value) == MESSAGE.format(package)


def test_without_a_record_no_package_of_the_group_is_imported():
    code = (
        "import sys; from pathlib import Path; from api.app import create_app; "
        "from api.metrics import Metrics; "
        "from api.records.recording import create_recording; from api.settings import Settings; "
        "settings = Settings(model=Path('model')); assert settings.record == 'off'; "
        "create_app(settings); create_recording(settings, Metrics(lambda: 0, lambda: True)); "
        "print({'sqlalchemy', 'alembic', 'psycopg', 'obstore', 'pyarrow'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == ("set()\n", "")
