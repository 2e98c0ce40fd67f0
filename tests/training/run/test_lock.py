"""Two processes never use one run folder; what a killed one left is removed."""

import fcntl
import subprocess
import sys

import pytest

from tests.marks import slow_case
from training.run.lock import lock_folder

pytest.importorskip("tensorflow")

from training.__main__ import main
from training.data.run_data import load_run_data
from training.experiment_file import load_experiment
from training.run.folder import RunFolder

HOLD = "import sys; from training.run.lock import lock_folder; from pathlib import Path; \
lock = lock_folder(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def config(tiny_experiment, tmp_path):
    return load_experiment(tiny_experiment, ["--runs", str(tmp_path)])


@pytest.fixture
def folder(config):
    """A run folder that nobody uses."""
    opened = RunFolder.open(config, load_run_data(config), fresh=False)
    opened.close()
    return opened


@pytest.fixture
def holder(folder):
    """Another process that holds the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder.path)], stdin=-1, stdout=-1, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def contents(folder):
    return {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}


@pytest.mark.parametrize("flags", [[], slow_case(["--fresh"])])
def test_a_second_process_is_refused(tiny_experiment, tmp_path, folder, holder, flags, capsys):
    before = contents(folder)
    with pytest.raises(SystemExit) as left:
        main(["run", str(tiny_experiment), "--runs", str(tmp_path), *flags])
    assert left.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"error: The run folder '{folder.path}' is in use by process {holder.pid} on ")
    assert contents(folder) == before
    assert {path.name for path in tmp_path.iterdir()} - {".checked"} == {"tiny"}


def test_the_end_of_a_process_releases_the_lock(folder, holder):
    holder.kill()
    holder.wait()
    lock_folder(folder.path).release()


def test_a_file_system_without_locks(tmp_path, monkeypatch, capsys):
    def refuse(_descriptor, _operation):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    lock_folder(tmp_path).release()
    assert f"warning: Cannot lock the run folder '{tmp_path}': No locks available." in capsys.readouterr().err


def test_leftovers_of_killed_processes_go(config, folder):
    digits = "0123456789abcdef" * 2
    scratch = folder.path / ".abc.tmp"
    scratch.mkdir()
    (scratch / "network.weights.h5").write_bytes(b"half")
    (folder.path / f".{digits}.tmp").write_bytes(b"half")
    (folder.path.parent / f".tiny.{digits}.tmp").mkdir()
    other = folder.path.parent / f".tiny.other.{digits}.tmp"
    other.mkdir()
    RunFolder.open(config, load_run_data(config), fresh=False).close()
    kept = {"config.toml", "environment.json", "lock", "splits.txt"}
    assert {path.name for path in folder.path.iterdir()} == kept
    assert {path.name for path in folder.path.parent.iterdir()} - {".checked"} == {"tiny", other.name}
