"""Two services must not use one SQLite record."""

import subprocess
import sys

import pytest

from api.database.service_lock import ServiceLock
from segdec.errors import ConfigError
from tests.api.conftest import ServiceClient

HOLD = """
import sys, pathlib
from api.database.service_lock import ServiceLock
ServiceLock(pathlib.Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_service(tmp_path):
    """A process that holds the lock of a record."""
    folder = tmp_path / "record"
    folder.mkdir()
    command = [sys.executable, "-c", HOLD, str(folder / "record.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_service_is_refused_until_the_first_one_ends(make_app, tmp_path, part, other_service):
    app = make_app(record="best-effort", record_folder=tmp_path / "record")
    with pytest.raises(ConfigError, match=r"Another service uses the record .*record\.db.* Stop it"):
        ServiceClient(app).__enter__()
    other_service.kill()
    other_service.wait()
    with ServiceClient(make_app(record="required", record_folder=tmp_path / "record")) as client:
        answer = client.post("/v1/inspect", content=part, headers={"Content-Type": "image/png"})
        assert answer.status_code == 200
        with pytest.raises(ConfigError):
            ServiceLock(tmp_path / "record" / "record.db").acquire()
    lock = ServiceLock(tmp_path / "record" / "record.db")
    lock.acquire()
    lock.release()
