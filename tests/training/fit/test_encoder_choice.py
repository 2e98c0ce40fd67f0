"""The encoder is chosen by a limit on the time of a prediction with the exported model."""

from itertools import count

import pytest

from segdec.errors import ConfigError
from training.config import ExperimentConfig
from training.fit.encoder_choice import choose_encoder
from training.fit.experiment_choice import Resources
from training.fit.splitting import split_dataset

TIMES = {"mobilenet": 45.2, "efficientnet_lite2": 52.0, "efficientnet_lite0": 31.0}


def test_the_first_encoder_within_the_limit_is_chosen():
    assert choose_encoder(list(TIMES), 50, TIMES.__getitem__) == (
        "mobilenet",
        "mobilenet predicts a photograph in 45.2 ms; --max-ms 50",
    )
    name, text = choose_encoder(list(TIMES), 40, TIMES.__getitem__)
    assert name == "efficientnet_lite0"
    assert text.startswith("mobilenet predicts a photograph in 45.2 ms, efficientnet_lite2 in 52 ms, eff")


@pytest.mark.parametrize(
    ("limit", "problem"),
    [
        (30, r"^--max-ms 30: mobilenet predicts a .* efficientnet_lite0 in 31 ms\. Expected at most 30 ms: "),
        (0, r"^--max-ms 0\. Expected a time above 0 ms"),
        (float("nan"), r"^--max-ms nan\. Expected a time above 0 ms"),
    ],
)
def test_a_limit_that_none_keeps_is_an_error(limit, problem):
    with pytest.raises(ConfigError, match=problem):
        choose_encoder(list(TIMES), limit, TIMES.__getitem__)


@pytest.mark.usefixtures("tensorflow_devices")
def test_the_exported_network_is_measured(tiny_config):
    from training.fit.forward_time import measure_serving

    ticks = count()
    config = ExperimentConfig(network=tiny_config.network, stages={"joint": {"steps": 1}})
    assert measure_serving(config, ("good", "defect"), (64, 48), lambda: next(ticks) / 4) == 250


@pytest.mark.usefixtures("tensorflow_devices")
@pytest.mark.parametrize(
    ("weights", "limit", "encoder", "measured"),
    [
        ("imagenet", None, "mobilenet", []),
        ("imagenet", 50, "efficientnet_lite0", ["mobilenet", "efficientnet_lite0"]),
        ("weights.h5", 99, "mobilenet", ["mobilenet"]),
        (None, 99, "mobilenet", ["compact"]),
    ],
)
def test_encoders_whose_weights_are_present_are_measured_in_order(
    profiled_of, monkeypatch, tmp_path, capsys, weights, limit, encoder, measured
):
    from training.fit import command

    found = []

    def measure(config, *_):
        found.append(config.network.encoder if config.network.preset == "mobilenet" else "compact")
        return 80.0 if found[-1] == "mobilenet" else 40.0

    monkeypatch.setattr(command, "measure_serving", measure)
    monkeypatch.setattr(command, "present_encoders", lambda: ["mobilenet", "efficientnet_lite0"])
    profiled = profiled_of([[(0,)]] * 20 + [[(1,)]] * 20)
    options = command.FitOptions(root=tmp_path, max_ms=limit, encoder_weights=weights or "none")
    split = split_dataset(profiled)
    resources = command._keep_limit(options, profiled.profile, split, Resources(weights))
    assert (resources.encoder, found) == (encoder, measured)
    assert ("--max-ms" in capsys.readouterr().out) == bool(measured)
