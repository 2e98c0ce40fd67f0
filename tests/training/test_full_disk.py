"""A disk that fills up ends a run with one line; with space again, it ends as if nothing had been."""

import signal

import pytest

pytest.importorskip("tensorflow")

LARGEST_FILE = {"checkpoints": 100_000, "log.jsonl or events": 2_500, "weights": 600_000}
"""Bytes that stop the writing of what is named, and of nothing before it."""


def files(folder):
    """Everything but the events, which TensorFlow starts anew in each process."""
    return {path.relative_to(folder) for path in folder.rglob("*") if "tensorboard" not in path.parts}


@pytest.mark.slow
def test_a_disk_full_again_and_again(run_process, tiny_experiment, finished_run, tmp_path, check_same_run):
    arguments = ["run", tiny_experiment, "--runs", tmp_path]
    ended = run_process(*arguments, kill_at="training.run.meter:Meter.advance", count=4, when="before")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    before = files(tmp_path)
    for what in ("checkpoints", "log.jsonl or events"):
        check_refused(run_process(*arguments, file_limit=LARGEST_FILE[what]), tmp_path / "tiny")
        assert files(tmp_path) == before
    check_refused(run_process(*arguments, file_limit=LARGEST_FILE["weights"]), tmp_path / "tiny")
    assert not (tmp_path / "tiny" / "result.json").exists()
    assert not (tmp_path / "tiny" / "network.weights.h5").exists()
    assert [path.name for path in tmp_path.rglob(".*")] == [".checked"]
    ended = run_process(*arguments)
    assert ended.returncode == 0, ended.stderr
    check_same_run(tmp_path / "tiny", finished_run)


def check_refused(ended, run):
    """Exit code 2, and one line that says what to do."""
    assert ended.returncode == 2, ended.stderr
    line = next(line for line in ended.stderr.splitlines() if line.startswith("error: "))
    assert line.startswith(f"error: Cannot write '{run}")
    assert "File too large. Earlier checkpoints are intact" in line
    assert "run the same command again" in line
    assert "Traceback" not in ended.stderr
