"""A run killed at any moment, and started again, ends bit-identical to one that was left alone."""

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("tensorflow")

from training.run.checkpoint_folder import CheckpointFolder
from training.run.folder import RunFolder

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

LENGTHS = {"segment": 12, "decision": 10, "joint": 8}
FLAGS = [word for stage, steps in LENGTHS.items() for word in (f"--stages.{stage}.steps", str(steps))]
METRICS = "training.metrics.validation:Validator.measure"
WRITE = "tensorflow:train.Checkpoint.write"
KILLS = [
    {"kill_at_file": 3},
    {"kill_at": WRITE, "when": "torn", "count": 2},
    {"kill_at": "training.run.checkpoints:RunState.save", "when": "after", "count": 1},
    {"kill_at": "training.run.checkpoints:RunState.restore_best", "when": "after", "count": 1},
    {"kill_at": METRICS, "when": "after", "count": 2},
    {"kill_at_file": 20},
    {"kill_at": "training.run.meter:Meter.advance", "when": "before", "count": 5},
    {"kill_at": "segdec.network.network:SegDecNet.save_weights", "when": "torn", "count": 1},
]
"""Where a process is killed: at a file, or before or after a call, with its file half written if torn."""


def arguments(experiment, runs, *flags):
    return ["run", experiment, "--runs", runs, *FLAGS, "--checkpoint-every", "3", *flags]


@pytest.fixture(scope="module")
def undisturbed(run_process, tiny_experiment, tmp_path_factory):
    """The uninterrupted run."""
    runs = tmp_path_factory.mktemp("left-alone")
    ended = run_process(*arguments(tiny_experiment, runs))
    assert ended.returncode == 0, ended.stderr
    return runs / "tiny"


def warnings_of(ended):
    """Warnings of a process; a resumed one prints the same."""
    return [line for line in ended.stderr.splitlines() if line.startswith("warning: ")]


def warnings_in(run):
    return [f"warning: {warning}" for warning in RunFolder(run).result().warnings]


@pytest.mark.slow
def test_a_run_killed_again_and_again(run_process, tiny_experiment, undisturbed, tmp_path, check_same_run):
    for kill in KILLS:
        faults = {**kill, "runs": str(tmp_path)} if "kill_at_file" in kill else kill
        ended = run_process(*arguments(tiny_experiment, tmp_path), **faults)
        assert ended.returncode == -signal.SIGKILL, (kill, ended.stderr)
        assert not (tmp_path / "tiny" / "result.json").exists()
        if kill.get("when") == "torn":
            assert list(tmp_path.rglob(".*.tmp")) != []
    ended = run_process(*arguments(tiny_experiment, tmp_path))
    assert (ended.returncode, warnings_of(ended)) == (0, warnings_in(undisturbed)), ended.stderr
    check_same_run(tmp_path / "tiny", undisturbed)
    left = [path for path in tmp_path.rglob(".*.tmp") if path.parent.name != ".checked"]
    assert left == []  # other processes may be writing to the shared folder `.checked`


@pytest.mark.slow
def test_a_damaged_checkpoint_of_a_killed_run(
    run_process, tiny_experiment, undisturbed, tmp_path, check_same_run
):
    """The previous checkpoint is in the stage before."""
    ended = run_process(
        *arguments(tiny_experiment, tmp_path),
        kill_at=METRICS,
        when="after",
        count=9,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    newest, previous = CheckpointFolder(tmp_path / "tiny" / "checkpoints", keep=2).newest_first()
    assert (newest.name, previous.name) == ("ckpt-2-0", "ckpt-1-9")
    data = next(newest.glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:-100])
    ended = run_process(*arguments(tiny_experiment, tmp_path))
    assert f"warning: The checkpoint '{newest}' cannot be read" in ended.stderr
    assert f"'{previous}'" in ended.stderr
    assert ended.returncode == 0
    check_same_run(tmp_path / "tiny", undisturbed)


@pytest.mark.slow
def test_the_same_seed_in_two_processes(tiny_experiment, undisturbed, tmp_path, check_same_run):
    """The other process has its own hash seed and was not forked."""
    process = subprocess.run(
        [sys.executable, "-m", "training", *map(str, arguments(tiny_experiment, tmp_path))],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONHASHSEED": "1"},
    )
    assert process.returncode == 0, process.stderr
    check_same_run(tmp_path / "tiny", undisturbed)
