"""An interrupted run saves a checkpoint and resumes with the same result."""

import gc
import signal
import time

import pytest

from tests import forked
from training.distribution.interruption import EXIT_CODES, Interruption, RunInterruptedError
from training.experiment_file import load_experiment
from training.run.run_log import read_log

pytest.importorskip("tensorflow")

from training.run.meter import Meter
from training.trainer import Trainer


@pytest.mark.slow
def test_an_interrupted_run_ends_as_the_uninterrupted_one(
    tiny_experiment, finished_run, tmp_path, monkeypatch, check_same_run
):
    """The signal comes during the last step of the second stage."""
    config = load_experiment(tiny_experiment, ["--runs", str(tmp_path)])
    taken, advance = [], Meter.advance

    def advance_and_raise(meter, losses, wait_s):
        advance(meter, losses, wait_s)
        taken.append(1)
        if len(taken) == 9:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Meter, "advance", advance_and_raise)
    with pytest.raises(RunInterruptedError, match="Stopped by SIGTERM after stage 'decision'") as stopped:
        Trainer(config).run()
    assert stopped.value.exit_code == 75
    assert not [one for one in gc.get_objects() if type(one).__name__ == "OwnedIterator"]  # see StepRunner
    trainer = Trainer(config)
    assert trainer.resumed
    check_same_run(trainer.run().path, finished_run)
    assert len(taken) == 12  # nothing is trained twice


def test_a_second_signal_has_its_usual_effect():
    handled = []
    before = {number: signal.signal(number, lambda *_: handled.append(1)) for number in EXIT_CODES}
    own = [signal.getsignal(number) for number in EXIT_CODES]
    with Interruption() as interruption:
        assert signal.getsignal(signal.SIGTERM) not in own
        signal.raise_signal(signal.SIGINT)
        assert (interruption.received, handled) == (signal.SIGINT, [])
        signal.raise_signal(signal.SIGINT)
        assert handled == [1]
    assert [signal.getsignal(number) for number in EXIT_CODES] == own
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.slow
def test_sigterm_of_a_process(tiny_experiment, tmp_path):
    flags = ["--runs", str(tmp_path), "--stages.segment.steps", "9000", "--checkpoint-every", "9000"]
    arguments = ["run", str(tiny_experiment), *flags, "--validate-every", "9000"]
    output = tmp_path / "printed.txt"
    process = forked.start("training", *arguments, "--fresh", printed=output)
    try:
        while process.exitcode is None and len(read_log(tmp_path / "tiny")) < 2:
            time.sleep(0.1)
        process.terminate()
        code, printed = forked.wait(process), output.read_text()
    finally:
        process.kill()
    assert code == 75, printed
    assert "Stopped by SIGTERM after step" in printed
    assert f"Resume with: python -m training {' '.join(arguments)}\n" in printed
    assert list((tmp_path / "tiny" / "checkpoints").glob("ckpt-0-*/state.index"))
