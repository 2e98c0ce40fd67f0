"""Runs whose stages end elsewhere than planned, or at once, and keep their best weights."""

import signal

import pytest

from training.experiment_file import load_experiment
from training.schedule_control import ScheduleControl

pytest.importorskip("tensorflow")

from training.distribution.interruption import RunInterruptedError
from training.run.folder import RunFolder
from training.run.records import UNTRAINED_DECISION
from training.run.run_log import read_log
from training.trainer import Trainer


class Leaping(ScheduleControl):
    """Goes two places with each step, so that stages take half their steps."""

    def begin_stage(self, stage, steps):
        super().begin_stage(stage, steps)
        self.taken, self.leads = 0, []

    @property
    def schedule_offset(self):
        return self.taken

    def is_last(self, step):
        return 2 * step >= self._steps

    def step_done(self, step):
        self.taken = step


@pytest.fixture
def config(tiny_experiment, tmp_path):
    schedule = ["--stages.segment.schedule.kind", "poly", "--stages.segment.schedule.power", "1"]
    return load_experiment(tiny_experiment, ["--runs", str(tmp_path / "runs"), *schedule])


@pytest.mark.slow
def test_stages_end_and_validate_where_the_control_ends_them(config, monkeypatch):
    rates = []
    follow = Trainer._update_schedule_offset

    def watch(trainer):
        follow(trainer)
        rates.append(float(trainer.train_state.optimizers["segment"].learning_rate))

    monkeypatch.setattr(Trainer, "_update_schedule_offset", watch)
    path = Trainer(config, control=Leaping()).run().path
    steps = {(record["stage"], record["step"]) for record in read_log(path) if record["kind"] == "val"}
    assert steps == {("segment", 3), ("decision", 2), ("joint", 2)}
    # Of five places of the schedule the steps take 0, 2 and 4; after the last the rate is at its end.
    assert rates[:4] == pytest.approx([1e-3, 0.6e-3, 0.2e-3, 0.0], abs=1e-9)
    assert RunFolder(path).has_result


class Stopping(ScheduleControl):
    """Asks for an end after so many steps of all stages, as Ctrl-C does."""

    def __init__(self, steps):
        self._left = steps

    def step_done(self, step):  # noqa: ARG002
        self._left -= 1
        if not self._left:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.slow
def test_a_stopped_run_writes_its_best_weights(config):
    trainer = Trainer(config, control=Stopping(4))
    with pytest.raises(RunInterruptedError) as stopped:
        trainer.run(keep_best_after=[signal.SIGINT])
    assert stopped.value.exit_code == 130
    folder = RunFolder.finished(trainer.folder.path)
    assert folder.result().validation["average_precision"] is not None
    assert folder.network().count_params() > 0
    assert UNTRAINED_DECISION in folder.result().warnings
