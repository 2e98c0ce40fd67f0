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
def left_alone(run_process, tiny_experiment, tmp_path_factory):
    """The run that nobody disturbs."""
    runs = tmp_path_factory.mktemp("left-alone")
    ended = run_process(*arguments(tiny_experiment, runs))
    assert ended.returncode == 0, ended.stderr
    return runs / "tiny"


def warnings_of(ended):
    """What a process warned of; one that goes on from where another died has nothing to add."""
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
def test_a_run_killed_again_and_again(run_process, tiny_experiment, left_alone, tmp_path, check_same_run):
    """A run that comes to its end in spite of all is compared, and the killing goes on with a new one."""
    rng, deaths, ends = random.Random(KILLS), [], 0
    while len(deaths) < KILLS or (tmp_path / str(ends)).exists():
        runs = tmp_path / str(ends)
        kind, befalls = faults(rng, runs) if len(deaths) < KILLS else ("none", {})
        ended = run_process(*arguments(tiny_experiment, runs), **befalls)
        if ended.returncode == -signal.SIGKILL:
            deaths.append(kind)
            continue
        assert (ended.returncode, warnings_of(ended)) == (0, warnings_in(left_alone)), ended.stderr
        check_same_run(runs / "tiny", left_alone)
        assert list(runs.rglob(".*.tmp")) == []
        ends += 1


@pytest.mark.slow
def test_a_run_killed_at_delicate_moments(run_process, tiny_experiment, left_alone, tmp_path, check_same_run):
    for kind in ("checkpoint half written", "between stages", "weights half written"):
        place, when, count = MOMENTS[kind]
        ended = run_process(*arguments(tiny_experiment, tmp_path), kill_at=place, when=when, count=count)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert (list(tmp_path.rglob(".*.tmp")) != []) == ("half written" in kind)
        assert not (tmp_path / "tiny" / "result.json").exists()
    ended = run_process(*arguments(tiny_experiment, tmp_path))
    assert (ended.returncode, warnings_of(ended)) == (0, warnings_in(left_alone)), ended.stderr
    check_same_run(tmp_path / "tiny", left_alone)
    assert list(tmp_path.rglob(".*.tmp")) == []


@pytest.mark.slow
def test_a_damaged_checkpoint_of_a_killed_run(
    run_process, tiny_experiment, left_alone, tmp_path, check_same_run
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
    check_same_run(tmp_path / "tiny", left_alone)


@pytest.mark.slow
def test_the_same_seed_in_two_processes(tiny_experiment, left_alone, tmp_path, check_same_run):
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
    check_same_run(tmp_path / "tiny", left_alone)
