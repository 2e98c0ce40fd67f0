"""A run killed at any moment, and started again, ends bit-identical to one that was left alone."""

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("tensorflow")

from training.run.checkpoint_folder import CheckpointFolder
from training.run.folder import RunFolder

LENGTHS = {"segment": 12, "decision": 10, "joint": 8}
FLAGS = [word for stage, steps in LENGTHS.items() for word in (f"--stages.{stage}.steps", str(steps))]
KILLS = [
    {"kill_at_file": 3},
    {"kill_at": "tensorflow:train.Checkpoint.write", "when": "torn", "count": 2},
    {"kill_at": "training.run.checkpoints:RunState.restore_best", "when": "after", "count": 1},
    {"kill_at": "training.run.meter:Meter.advance", "when": "before", "count": 5},
    {"kill_at": "training.metrics.validation:Validator.measure", "when": "after", "count": 5},
    {"kill_at": "segdec.network.network:SegDecNet.save_weights", "when": "torn", "count": 1},
]
"""Where a process is killed: at a file, or before or after a call, with its file half written if torn.

The last but one ends in the third stage, before its first checkpoint.
"""


def arguments(experiment, runs):
    return [*map(str, ["run", experiment, "--runs", runs]), *FLAGS, "--checkpoint-every", "3"]


@pytest.fixture
def undisturbed(tiny_experiment, tmp_path):
    """The uninterrupted run of a process that was not forked and has its own hash seed."""
    runs = tmp_path / "undisturbed"
    process = subprocess.run(
        [sys.executable, "-m", "training", *arguments(tiny_experiment, runs)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONHASHSEED": "1"},
    )
    assert process.returncode == 0, process.stderr
    return runs / "tiny"


def warnings_of(ended):
    """Warnings of a process; a resumed one prints the same."""
    return [line for line in ended.stderr.splitlines() if line.startswith("warning: ")]


def damage_newest(run):
    """Truncates the newest checkpoint, the first of the third stage; returns it and the one before."""
    newest, previous = CheckpointFolder(run / "checkpoints", keep=2).newest_first()
    assert (newest.name, previous.name) == ("ckpt-2-0", "ckpt-1-9")
    data = next(newest.glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:-100])
    return newest, previous


@pytest.mark.slow
def test_a_run_killed_again_and_again(run_process, tiny_experiment, undisturbed, tmp_path, check_same_run):
    runs, damaged = tmp_path / "killed", None
    for kill in KILLS:
        faults = {**kill, "runs": str(runs)} if "kill_at_file" in kill else kill
        ended = run_process(*arguments(tiny_experiment, runs), **faults)
        assert ended.returncode == -signal.SIGKILL, (kill, ended.stderr)
        assert not (runs / "tiny" / "result.json").exists()
        if kill.get("when") == "torn":
            assert list(runs.rglob(".*.tmp")) != []
        if damaged is not None:
            newest, previous = damaged
            assert f"warning: The checkpoint '{newest}' cannot be read" in ended.stderr
            assert f"'{previous}'" in ended.stderr
        damaged = damage_newest(runs / "tiny") if kill is KILLS[-2] else None
    ended = run_process(*arguments(tiny_experiment, runs))
    warnings = [f"warning: {warning}" for warning in RunFolder(undisturbed).result().warnings]
    assert (ended.returncode, warnings_of(ended)) == (0, warnings), ended.stderr
    check_same_run(runs / "tiny", undisturbed)
    left = [path for path in runs.rglob(".*.tmp") if path.parent.name != ".checked"]
    assert left == []  # other processes may be writing to the shared folder `.checked`
