"""`make studio` starts a service and a worker with a data set of which half is labelled."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from examples.studio import COUNT, needs_data_set
from tests.browser.conftest import serving
from tests.browser.test_log_in import add_people

ROOT = Path(__file__).parents[2]


@pytest.fixture
def interruptible():
    """Programs react to Ctrl-C, also if these tests were started in the background, which ignores it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_studio_offers_a_half_labelled_data_set_and_continues_with_it(tmp_path):
    for _ in range(2):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "examples.studio", "--port", "0"]
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as studio:
            try:
                line = next(line for line in studio.stdout if line.startswith("Open http"))
                url = line.split()[1].removesuffix("/datasets.")
                next(line for line in studio.stdout if "waits for jobs" in line)
                with urllib.request.urlopen(f"{url}/v1/data-sets") as answer:
                    (data_set,) = json.load(answer)["data_sets"]
                counts = data_set["counts"]
                assert (counts["labelled"], counts["unlabelled"]) == (COUNT // 2, COUNT // 2)
            finally:
                os.killpg(studio.pid, signal.SIGINT)
        assert studio.returncode == 0
    assert (tmp_path / "runs" / "studio" / "worker.key").stat().st_mode & 0o077 == 0


def test_studio_starts_again_after_users_were_added(tmp_path):
    with serving(tmp_path) as service:
        add_people(service)
        assert not needs_data_set(service.address.removesuffix("/"))
