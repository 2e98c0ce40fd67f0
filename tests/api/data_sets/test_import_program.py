"""The program that reads files of unknown senders: its errors, limits and end."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from api.data_sets import import_program
from api.data_sets.import_program import ProgramLimits, run_datasets
from api.messages.causes import JobError
from datasets.layouts.toy import write_toy

LIMITS = ProgramLimits(seconds=120, memory_bytes=4_000_000_000)


def run(folder, *arguments, limits=LIMITS):
    return asyncio.run(run_datasets(folder, limits, *arguments))


def write_pages(path):
    """Gives a photograph a second page and an EXIF rotation."""
    exif = Image.Exif()
    exif[0x0112] = 6
    with Image.open(path) as picture:
        picture.load()
    picture.save(path, save_all=True, append_images=[picture.rotate(180)], exif=exif)


def test_notes_are_returned_and_code_in_the_folder_is_not_run(tmp_path):
    """A data set may contain any files: no module is imported from it."""
    for name in ("datasets", "numpy", "api"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("open('trace', 'w').close()")
        (tmp_path / name / "__main__.py").write_text("open('trace', 'w').close()")
    write_toy(tmp_path / "own", 18, size=32)
    write_pages(next((tmp_path / "own/defect").glob("*.png")))
    several, rotation = run(tmp_path, "convert", "auto", "own", "converted")
    assert "has several pictures; the first one is used" in several
    assert "with an EXIF rotation" in rotation
    assert (tmp_path / "converted/manifest.jsonl").is_file()
    assert not (tmp_path / "trace").exists()


def test_errors_are_raised_with_their_causes(tmp_path):
    (tmp_path / "archive.zip").write_bytes(b"text")
    with pytest.raises(JobError, match="is not a zip file") as raised:
        run(tmp_path, "unpack", "archive.zip", "unpacked")
    assert raised.value.cause.code == "archive_damaged"


def test_settings_and_secrets_of_the_service_stay_there(tmp_path, monkeypatch):
    monkeypatch.setenv("SEGDEC_API_KEYS", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "secret" not in import_program._environment(tmp_path).values()


def test_memory_is_limited(tmp_path):
    limits = ProgramLimits(seconds=120, memory_bytes=1_000_000_000)
    with pytest.raises(JobError, match=r"needed more than 1\.0 GB of memory") as raised:
        run(tmp_path, "toy", "own", "--count", "18", "--size", "30000", limits=limits)
    assert raised.value.cause.values == {"gigabytes": 1.0}


def test_program_that_takes_too_long_is_killed(tmp_path):
    with pytest.raises(JobError, match="took more than 0 minutes"):
        run(tmp_path, "toy", "own", limits=ProgramLimits(seconds=0, memory_bytes=4_000_000_000))


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
def test_program_ends_with_the_service(tmp_path):
    """Killed without a chance to clean up, the service leaves no program behind."""
    code = (
        "import asyncio, pathlib, sys; from api.data_sets.import_program import *; "
        "asyncio.run(run_datasets(pathlib.Path(sys.argv[1]), ProgramLimits(600, 4 * 10**9), "
        "'toy', 'own', '--count', '100000'))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=Path(__file__).parents[3])
    try:
        wait_for(lambda: list(tmp_path.iterdir()))
        (child,) = children(parent.pid)
        assert Path(f"/proc/{child}/oom_score_adj").read_text().strip() == "1000"
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: not is_running(child))


def children(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition):
    for _ in range(6000):
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError("the condition stayed false for a minute")
