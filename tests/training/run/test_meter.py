import io
from types import SimpleNamespace

import pytest

from training.run import meter as module
from training.run.meter import Meter, NonFiniteError


class Scalar:
    """A number on the device: it says when the host waits for it."""

    def __init__(self, value, conversions):
        self.value, self.conversions = value, conversions

    def __float__(self):
        self.conversions.append(self.value)
        return self.value


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock.now)
    return clock


def test_a_step_is_not_waited_for(clock):
    conversions = []
    with Meter("joint", 4, 0, 10) as meter:
        for value in (1.0, 2.0):
            meter.advance({"loss": Scalar(value, conversions)}, 0.0)
        assert conversions == []
        clock.now += 1.0
        assert meter.read()["loss"] == 2.0
        assert conversions == [1.0, 2.0]


def test_speed_is_that_since_the_last_reading_and_losses_those_of_the_last_step(clock):
    with Meter("joint", 4, 0, 10) as meter:
        for loss, decision in ((1.0, 3.0), (2.0, 5.0)):
            clock.now += 0.5
            meter.advance({"loss": loss, "decision_loss": decision}, 0.125)
        speed = {"images_per_s": 8.0, "s_per_step": 0.5, "input_wait": 0.25}
        assert meter.read() == {"loss": 2.0, "decision_loss": 5.0, **speed}
        clock.now += 2.0
        meter.advance({"loss": 7.0, "decision_loss": 7.0}, 0.0)
        speed = {"images_per_s": 2.0, "s_per_step": 2.0, "input_wait": 0.0}
        assert meter.read() == {"loss": 7.0, "decision_loss": 7.0, **speed}


def test_a_pause_takes_no_training_time(clock):
    with Meter("joint", 4, 0, 10) as meter:
        clock.now += 1.0
        meter.advance({"loss": 1.0}, 0.5)
        with meter.paused():
            clock.now += 60.0
        with pytest.raises(KeyError), meter.paused():
            clock.now += 60.0
            raise KeyError
        clock.now += 1.0
        meter.advance({"loss": 3.0}, 0.0)
        read = meter.read()
    assert (read["loss"], read["s_per_step"], read["input_wait"]) == (3.0, 1.0, 0.25)


@pytest.mark.parametrize(
    ("value", "act"), [(float("nan"), "read"), (float("inf"), "check"), (float("nan"), "paused")]
)
def test_the_first_bad_step_is_named(value, act):
    with Meter("decision", 4, 20, 30) as meter:
        meter.advance({"loss": 1.0, "decision_loss": 1.0}, 0.0)
        meter.check()
        meter.advance({"loss": 1.0, "decision_loss": 1.0}, 0.0)
        meter.advance({"loss": 1.0, "decision_loss": value}, 0.0)
        meter.advance({"loss": value, "decision_loss": value}, 0.0)
        with pytest.raises(NonFiniteError, match=r"decision_loss of stage 'decision'.* at step 23") as caught:
            if act == "paused":
                with meter.paused():
                    pytest.fail("spoilt weights must not be saved")
            getattr(meter, act)()
    error = caught.value
    assert (error.stage, error.step, error.name) == ("decision", 23, "decision_loss")
    assert str(error.value) == str(value)


def test_bar_shows_losses_ap_and_speed_on_a_terminal(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "200")
    with Meter("segment", 4, 0, 10) as meter:
        clock.now += 0.5
        meter.advance({"loss": 0.12345}, 0.05)
        meter.show_validation({"average_precision": 0.9876, "pixel_f1": None})
        meter.read()
    shown = terminal.getvalue().split("\r")[-1]
    for part in ("segment", "1/10", "loss 0.1235", "AP 0.988", "pixel F1 –", "8 images/s", "0.5 s/step"):
        assert part in shown
    assert "input wait 10%" in shown


def test_without_a_terminal_each_validation_is_a_line(clock, capsys):
    with Meter("segment", 4, 20, 50) as meter:
        meter.advance({"loss": 1.0}, 0.0)
        clock.now += 4.0
        meter.show_validation({"average_precision": 0.5, "pixel_f1": 1.0})
        for _ in range(29):
            meter.advance({"loss": 1.0}, 0.0)
        meter.show_validation({"average_precision": None, "pixel_f1": 1.0})
        meter.read()
    expected = "segment 21/50: AP 0.500, about 1 min 56 s of this stage left\nsegment 50/50: AP –\n"
    assert capsys.readouterr() == ("", expected)
