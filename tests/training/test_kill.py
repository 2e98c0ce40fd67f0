"""A run killed at any moment, and started again, ends bit-identical to one that was left alone."""

import os
import random
import signal
import subprocess
import sys

import pytest

pytest.importorskip("tensorflow")

from training.run.checkpoints import CheckpointFolder
from training.run.folder import RunFolder

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

LENGTHS = {"segment": 12, "decision": 10, "joint": 8}
FLAGS = [word for stage, steps in LENGTHS.items() for word in (f"--stages.{stage}.steps", str(steps))]
KILLS = 10
MOMENTS = {
    "step": ("training.run.meter:Meter.advance", "before", 6),
    "checkpoint half written": ("tensorflow:train.Checkpoint.write", "torn", 2),
    "checkpoint not in place": ("tensorflow:train.Checkpoint.write", "after", 2),
    "checkpoint just written": ("training.run.checkpoints:RunState.save", "after", 2),
    "between stages": ("training.run.checkpoints:RunState.restore_best", "after", 2),
    "validation": ("training.metrics.validation:Validator.measure", "after", 2),
    "weights half written": ("segdec.network.network:SegDecNet.save_weights", "torn", 1),
}
"""Where a process dies: a call, before or after it, at the latest at which of its calls."""


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


def faults(rng, runs):
    """A moment at which to die, drawn by `rng`."""
    kind = rng.choice([*MOMENTS, "file", "file", "clock"])
    if kind == "file":
        return kind, {"kill_at_file": rng.randint(1, 25), "runs": str(runs)}
    if kind == "clock":
        return kind, {"kill_after_s": rng.uniform(0.2, 3.0)}
    place, when, calls = MOMENTS[kind]
    return kind, {"kill_at": place, "when": when, "count": rng.randint(1, calls)}


@pytest.mark.slow
def test_a_run_killed_again_and_again(run_process, tiny_experiment, undisturbed, tmp_path, check_same_run):
    """Finished runs are compared, and the kills continue with a new run."""
    rng, deaths, ends = random.Random(KILLS), [], 0
    while len(deaths) < KILLS or (tmp_path / str(ends)).exists():
        runs = tmp_path / str(ends)
        kind, chosen_faults = faults(rng, runs) if len(deaths) < KILLS else ("none", {})
        ended = run_process(*arguments(tiny_experiment, runs), **chosen_faults)
        if ended.returncode == -signal.SIGKILL:
            deaths.append(kind)
            continue
        assert (ended.returncode, warnings_of(ended)) == (0, warnings_in(undisturbed)), ended.stderr
        check_same_run(runs / "tiny", undisturbed)
        left = [path for path in runs.rglob(".*.tmp") if path.parent.name != ".checked"]
        assert left == []  # other processes may be writing to the shared folder `.checked`
        ends += 1


@pytest.mark.slow
def test_a_run_killed_at_delicate_moments(
    run_process, tiny_experiment, undisturbed, tmp_path, check_same_run
):
    for kind in ("checkpoint half written", "between stages", "weights half written"):
        place, when, count = MOMENTS[kind]
        ended = run_process(*arguments(tiny_experiment, tmp_path), kill_at=place, when=when, count=count)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert (list(tmp_path.rglob(".*.tmp")) != []) == ("half written" in kind)
        assert not (tmp_path / "tiny" / "result.json").exists()
    ended = run_process(*arguments(tiny_experiment, tmp_path))
    assert (ended.returncode, warnings_of(ended)) == (0, warnings_in(undisturbed)), ended.stderr
    check_same_run(tmp_path / "tiny", undisturbed)
    assert list(tmp_path.rglob(".*.tmp")) == []


@pytest.mark.slow
def test_a_damaged_checkpoint_of_a_killed_run(
    run_process, tiny_experiment, undisturbed, tmp_path, check_same_run
):
    """The previous checkpoint lies in the stage before."""
    ended = run_process(
        *arguments(tiny_experiment, tmp_path),
        kill_at="training.metrics.validation:Validator.measure",
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
