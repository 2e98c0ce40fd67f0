"""The encoder is chosen by out-of-fold scores and by a limit on the time of a prediction."""

import hashlib
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from datasets.sample import DataSetItem
from segdec.encoders import ENCODERS
from segdec.errors import ConfigError
from tests.torch_files import encode
from training.config import ExperimentConfig
from training.fit.encoder_choice import (
    ComparedEncoder,
    EncoderComparison,
    choose_encoder,
    count_photographs,
    keep_compared,
    minutes_needed,
    time_share,
)
from training.fit.encoder_comparison import pick_photographs
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


def test_the_exported_network_is_measured(tiny_config):
    from training.fit.forward_time import measure_serving

    ticks = count()
    config = ExperimentConfig(network=tiny_config.network, stages={"joint": {"steps": 1}})
    assert measure_serving(config, ("good", "defect"), (64, 48), lambda: next(ticks) / 4) == 250


# === Out-of-fold scores ===


def compared(*rows, defective=25):
    encoders = tuple(ComparedEncoder(*row, *([] if len(row) > 3 else [200])) for row in rows)
    return EncoderComparison(encoders, share_s=60.0, photographs=200, defective=defective)


@pytest.mark.parametrize(
    ("precision", "defective", "chosen"),
    [(0.93, 25, "resnet50"), (0.915, 25, "mobilenet"), (0.93, 9, "mobilenet"), (0.89, 25, "mobilenet")],
)
def test_the_fastest_within_noise_of_the_best_is_chosen(precision, defective, chosen):
    """The noise is 0.1 / √25 = 0.02, and 0.033 with 9 defects; both orders."""
    rows = [("resnet50", 210.0, precision), ("mobilenet", 45.0, 0.9)]
    for order in (rows, rows[::-1]):
        assert compared(*order, defective=defective).chosen == chosen


@pytest.mark.parametrize(
    ("steps", "chosen"),
    [
        ((100, 100, 100), "resnet50"),
        ((200, 100, 99), "lite"),
        ((200, 99, 99), "mobilenet"),
        ((99, 200, 200), "mobilenet"),
    ],
)
def test_encoders_with_too_few_steps_are_not_chosen(steps, chosen):
    comparison = compared(
        ("mobilenet", 45.0, 0.8, steps[0]), ("lite", 40.0, 0.9, steps[1]), ("resnet50", 210.0, 0.99, steps[2])
    )
    assert comparison.chosen == chosen
    assert ("needs more time" in next(comparison.to_lines())) == (not comparison.is_valid)


def test_the_table_has_a_line_for_each_encoder():
    lines = "\n".join(compared(("mobilenet", 45.2, 0.9), ("resnet50", 210.0, 0.95)).to_lines())
    words = " ".join(lines.split())
    assert words.startswith("encoder resnet50: the fastest of those whose out-of-fold AP is at most 0.020 ")
    assert words.endswith(
        "at most 60 s each, 200 photographs, 25 of them defective, at least 100 steps "
        "mobilenet AP 0.900 after 200 steps 45.2 ms per photograph "
        "resnet50 AP 0.950 after 200 steps 210 ms per photograph"
    )


def test_the_time_for_a_comparison():
    """Each gets a tenth of ten minutes; four encoders together three tenths."""
    assert (time_share(2), time_share(4)) == (0.1, 0.075)
    assert minutes_needed([0.0, 0.0]) == pytest.approx(20 / 6)
    assert count_photographs(60.0, [20.0, 200.0]) == (60 - 20 - 100 * 8 * 0.5 * 0.02) / 0.2
    assert count_photographs(60.0, [20.0, 30.0]) == 300
    durations = {"resnet50": 200.0, "mobilenet": 80.0, "efficientnet_lite0": 40.0}
    needed = pytest.approx((20 + 16 + 10) / 6)
    assert keep_compared(durations, 7.7) == (durations, needed)
    assert keep_compared(durations, 7.6) == ({"mobilenet": 80.0, "efficientnet_lite0": 40.0}, needed)
    assert keep_compared(durations, 6.5) == ({}, needed)


def test_photographs_of_all_folds_are_compared():
    labels = [1] * 6 + [0] * 30
    items = [
        DataSetItem(str(number), Path("a.png"), None, label, str(number), "train", fold=1 + number % 3)
        for number, label in enumerate(labels)
    ]
    for number, good, defective in ((8, 4, 4), (20, 14, 6), (99, 30, 6)):
        picked = pick_photographs(items, number, seed=1)
        counts = Counter((item.label, item.fold) for item in picked)
        assert sum(counts[0, fold] for fold in (1, 2, 3)) == good
        assert sum(counts[1, fold] for fold in (1, 2, 3)) == defective
        assert min(counts.values()) >= 1
    few_good = [item for item in items if item.label or int(item.name) < 9]
    assert Counter(item.label for item in pick_photographs(few_good, 8, seed=1)) == {1: 5, 0: 3}


@pytest.fixture
def choose(profiled_of, monkeypatch, tmp_path):
    """Chooses between three encoders of which the measured time and the AP are given."""
    from training.fit import command

    milliseconds = {"mobilenet": 80.0, "efficientnet_lite0": 40.0, "resnet50": 200.0}
    precisions = {"mobilenet": 0.8, "efficientnet_lite0": 0.7, "resnet50": 0.9}
    measured, trained = [], []

    def measure(config, *_):
        name = config.network.encoder if config.network.preset == "mobilenet" else "compact"
        measured.append(name)
        return milliseconds.get(name, 40.0)

    def train(config, items, *_):
        trained.append((config.network.encoder, len(items)))
        return precisions[config.network.encoder], 200

    monkeypatch.setattr(command, "measure_serving", measure)
    monkeypatch.setattr(command, "measure_average_precision", train)
    monkeypatch.setattr(command, "store_checks", lambda *_: None)
    monkeypatch.setattr(command, "present_encoders", lambda: list(milliseconds))
    profiled = profiled_of([[(0,)]] * 20 + [[(1,)]] * 20)

    def choose(weights="imagenet", *, folds=True, **given):
        options = command.FitOptions(root=tmp_path, encoder_weights=weights or "none", **given)
        split = split_dataset(profiled, with_folds=folds)
        resources = Resources(weights, encoder=given.get("encoder") or "mobilenet")
        resources, lines = command._choose_encoder(options, profiled, split, resources, pytest.fail)
        return resources.encoder, " ".join(" ".join(lines).split()), measured, trained

    return choose


ALL = ["mobilenet", "efficientnet_lite0", "resnet50"]


@pytest.mark.parametrize(
    ("given", "encoder", "measured", "trained"),
    [
        ({"minutes": 20.0}, "resnet50", ALL, ALL),
        ({"minutes": 20.0, "max_ms": 100.0}, "mobilenet", ALL, ALL[:2]),
        ({"minutes": 7.0}, "mobilenet", ALL, ALL[:2]),
        ({"minutes": 20.0, "max_ms": 50.0}, "efficientnet_lite0", ALL, []),
        ({"minutes": 20.0, "encoder": "resnet50"}, "resnet50", [], []),
        ({"minutes": 20.0, "weights": "weights.h5", "max_ms": 99.0}, "mobilenet", ["mobilenet"], []),
        ({"minutes": 20.0, "weights": None, "max_ms": 99.0}, "mobilenet", ["compact"], []),
    ],
)
def test_present_encoders_are_compared(choose, capsys, given, encoder, measured, trained):
    chosen, text, *calls = choose(**given)
    assert (chosen, calls) == (encoder, [measured, [(name, 40) for name in trained]])
    printed = " ".join(capsys.readouterr().out.split())
    assert text in printed
    assert ("out-of-fold AP" in text) == bool(trained)
    assert ("--max-ms" in printed) == ("max_ms" in given)


@pytest.mark.parametrize(
    ("given", "encoder", "measured", "needed"),
    [
        ({"minutes": 3.0}, "mobilenet", [], "--minutes 4"),
        ({"minutes": 3.0, "max_ms": 50.0}, "efficientnet_lite0", ALL[:2], "--minutes 4"),
        ({"minutes": 4.0}, "mobilenet", ALL, "--minutes 8"),
        ({"minutes": 20.0, "folds": False}, "mobilenet", [], "three defective and three good parts"),
    ],
)
def test_without_time_or_defects_it_is_the_first_one(choose, given, encoder, measured, needed):
    chosen, text, *calls = choose(**given)
    assert (chosen, calls) == (encoder, [measured, []])
    listed = "mobilenet, efficientnet_lite0, resnet50"
    assert (
        text == f"encoder {encoder}, the first one; {listed} not compared, which would need at least {needed}"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_transformer")
def test_encoders_are_compared_by_training_heads(toy_root, tmp_path, monkeypatch, capsys):
    """With two transformers of two blocks, two steps each; nothing but the checks of the files is left."""
    from training.fit import command, encoder_comparison, experiment_choice
    from training.optimization import pretrained
    from training.optimization.transformer_weights import state_dict_shapes

    random = np.random.default_rng(1)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    names = ["tiny_one", "tiny_two"]
    for name in names:
        row = ENCODERS["tiny_transformer"]
        shapes = state_dict_shapes(**row.arguments)
        data = encode({key: random.normal(0, 0.1, shape).astype(np.float32) for key, shape in shapes.items()})
        (tmp_path / "models" / f"{name}.pth").write_bytes(data)
        row = replace(row, weights_file=f"{name}.pth", sha256=hashlib.sha256(data).hexdigest())
        monkeypatch.setitem(ENCODERS, name, row)
    monkeypatch.setattr(command, "present_encoders", lambda: names)
    monkeypatch.setattr(command, "measure_serving", lambda *_: 10.0)
    monkeypatch.setattr(encoder_comparison, "MAX_STEPS", 2)
    monkeypatch.setattr(experiment_choice, "ENCODER_AREA", 32 * 32)  # images are not enlarged
    monkeypatch.setattr(command, "clock", lambda: 0.0)
    options = command.FitOptions(root=toy_root, runs=tmp_path / "runs", max_ms=20.0)
    profiled, split = command._split(command._profile(options), with_folds=True)
    resources = Resources("imagenet", encoder="tiny_one")
    load, loaded = pretrained.load_each_once(), []
    load_file = pretrained._load_file
    monkeypatch.setattr(pretrained, "_load_file", lambda *words: loaded.append(words[0]) or load_file(*words))
    load(ExperimentConfig(network={"encoder": "tiny_one"}, stages={"joint": {"steps": 1}}))
    resources, lines = command._choose_encoder(options, profiled, split, resources, load)
    assert loaded == names
    assert resources.encoder in names
    rows = [line.split() for line in "\n".join(lines).splitlines()[-2:]]
    assert [(row[0], row[4]) for row in rows] == [(name, "2") for name in names]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [".checked"]
    assert capsys.readouterr().err == ""
