"""An interrupted run saves a checkpoint and resumes with the same result."""

import gc
import signal
import time

import pytest

from tests import forked
from training.distribution.interruption import Interruption, RunInterruptedError
from training.experiment_file import load_experiment
from training.run.run_log import read_log

pytest.importorskip("tensorflow")

from training.run.meter import Meter
from training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


def interrupt(patch, number, steps):
    """The signal comes during the step of this number, counted over all stages."""
    taken = []
    advance = Meter.advance

    def advance_and_raise(meter, losses, wait_s):
        advance(meter, losses, wait_s)
        taken.append(1)
        if len(taken) == steps:
            signal.raise_signal(number)

    patch.setattr(Meter, "advance", advance_and_raise)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "steps", "place", "code"),
    [
        (signal.SIGINT, 3, "after step 3 of stage 'segment'", 130),  # no checkpoint is due at step 3
        (signal.SIGTERM, 9, "after stage 'decision'", 75),  # last step of a stage
    ],
)
def test_an_interrupted_run_ends_as_the_uninterrupted_one(
    tiny_experiment, finished_run, tmp_path, monkeypatch, number, steps, place, code, check_same_run
):
    config = load_experiment(tiny_experiment, ["--runs", str(tmp_path)])
    with monkeypatch.context() as patch:
        interrupt(patch, number, steps)
        with pytest.raises(RunInterruptedError, match=f"Stopped by {number.name} {place}") as stopped:
            Trainer(config).run()
    assert stopped.value.exit_code == code
    assert not [one for one in gc.get_objects() if type(one).__name__ == "OwnedIterator"]  # see StepRunner
    trainer = Trainer(config)
    assert trainer.resumed
    taken = 5 * (int(trainer.state.stage) > 0) + 4 * (int(trainer.state.stage) > 1) + int(trainer.state.step)
    assert taken == steps  # nothing is trained twice
    run = trainer.run().path
    check_same_run(run, finished_run)


@pytest.fixture
def python_handlers():
    """Python's own handlers: a shell starts background jobs with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_handlers")
def test_a_second_signal_has_its_usual_effect():
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.received is signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_handlers_are_restored():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with Interruption():
        assert signal.getsignal(signal.SIGTERM) not in before
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def wait_for(condition, seconds=120):
    for _ in range(seconds * 10):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError


@pytest.mark.slow
def test_sigterm_of_a_process(tiny_experiment, tmp_path):
    flags = ["--runs", str(tmp_path), "--stages.segment.steps", "9000", "--checkpoint-every", "9000"]
    words = ["run", str(tiny_experiment), *flags, "--validate-every", "9000"]
    output = tmp_path / "printed.txt"
    process = forked.start("training", *words, "--fresh", printed=output)
    try:
        wait_for(lambda: process.exitcode is not None or len(read_log(tmp_path / "tiny")) > 1)
        process.terminate()
        code, printed = forked.wait(process), output.read_text()
    finally:
        process.kill()
    assert code == 75, printed
    assert "Stopped by SIGTERM after step" in printed
    assert f"Resume with: python -m training {' '.join(words)}\n" in printed
    assert list((tmp_path / "tiny" / "checkpoints").glob("ckpt-0-*/state.index"))
