"""The duration of a forward pass, of a predictor whose time is made up."""

import pytest

pytest.importorskip("tensorflow")

from segdec.config import InputConfig
from training.config import ExperimentConfig
from training.fit import forward_time
from training.fit.forward_time import FORWARD_ROUNDS, measure_forward


@pytest.mark.parametrize(
    ("durations", "expected", "rounds"),
    [([0.5, *[0.01] * 20], 0.01, FORWARD_ROUNDS), ([3.0, *[0.1] * 20], 3.0, 1)],
    ids=["one is disturbed", "photographs take long"],
)
def test_the_duration_of_a_forward_pass_is_a_median_of_some(monkeypatch, durations, expected, rounds):
    now, remaining = [0.0], iter([60.0, *durations])  # the first one compiles

    class TimedPredictor:
        def predict(self, images):
            assert images[0].shape == (20, 30, 1)
            now[0] += next(remaining)

    for name in ("build_network", "NetworkEngine"):
        monkeypatch.setattr(forward_time, name, lambda _: None)
    monkeypatch.setattr(forward_time, "Predictor", lambda *_: TimedPredictor())
    config = ExperimentConfig(input=InputConfig(), stages={"joint": {"steps": 1}})
    assert measure_forward(config, ("good", "defect"), (20, 30), lambda: now[0]) == pytest.approx(expected)
    assert len([*remaining]) == len(durations) - rounds
