"""The comparison trains on the defects that it says, as long as it says, and puts figures into their line."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import encoder_comparison
from benchmarks.encoder_comparison import Cell, describe, keep_defects, scaled_steps
from datasets.sample import Record
from segdec.errors import ConfigError, RunError
from training.experiment_file import load_experiment
from training.metrics.aggregation import MeanStd

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "training" / "experiments"


def records():
    splits = ["train"] * 10 + ["val"] * 3 + ["test"] * 3
    return [
        Record(f"{number:02}", Path(f"{number}.png"), None, label=number % 2, group=str(number), split=split)
        for number, split in enumerate(splits)
    ]


@pytest.mark.parametrize("defects", [0, 1, 3, 5])
def test_of_the_defective_training_photographs_so_many_stay(defects):
    kept = list(keep_defects(records(), defects, seed=0))
    assert sum(record.label for record in kept if record.split == "train") == defects
    others = [record for record in records() if not (record.split == "train" and record.label)]
    if not defects:  # nor does validation show one
        others = [record for record in others if not (record.split == "val" and record.label)]
        assert kept == others
    assert [record for record in kept if record in others] == others


def test_more_defects_than_there_are_are_refused():
    with pytest.raises(ConfigError, match="--defects 6, but there are 5"):
        keep_defects(records(), 6, seed=0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.toml", "b/a.toml", "--seeds", "0", "1"], "Both experiments are called 'a'"),
        (["a.toml", "b.toml", "--seeds", "0"], "has no spread"),
    ],
)
def test_what_could_not_be_told_apart_is_refused(words, message, capsys):
    with pytest.raises(SystemExit):
        encoder_comparison.main(words)
    assert message in capsys.readouterr().err


def test_runs_of_other_flags_are_refused(tmp_path, monkeypatch):
    config = load_experiment(EXPERIMENTS / "kolektor_compact.toml")
    monkeypatch.setattr(
        encoder_comparison.RunFolder, "finished", lambda _: SimpleNamespace(experiment=lambda: config)
    )
    path = EXPERIMENTS / "kolektor_compact.toml"
    same = load_experiment(path, ["--seed", "3", "--stages.joint.steps", "2", "--data.splits", "other.txt"])
    encoder_comparison._check_same(tmp_path, same)
    with pytest.raises(RunError, match="was made with batch_size = 2, now it is 5"):
        encoder_comparison._check_same(tmp_path, load_experiment(path, ["--batch-size", "5"]))


def test_the_seed_draws_which_of_them_stay():
    draws = {tuple(record.name for record in keep_defects(records(), 2, seed)) for seed in range(20)}
    assert len(draws) > 1
    assert list(keep_defects(records(), 2, 7)) == list(keep_defects(records(), 2, 7))


def test_stages_keep_their_shares_of_the_time():
    config = load_experiment(EXPERIMENTS / "kolektor_compact.toml")
    assert scaled_steps(config, 0.25) == [
        *("--stages.segment.steps", "225"),
        *("--stages.decision.steps", "50"),
        *("--stages.joint.steps", "100"),
    ]
    assert scaled_steps(config, 0.0001)[1::2] == ["1", "1", "1"]


def test_figures_stand_in_their_line(tmp_path, monkeypatch):
    pretrained, scratch = Cell(Path("a_mobilenet.toml"), None), Cell(Path("a_compact.toml"), 5)
    splits, seeds = [Path("fold_0.txt"), Path("fold_1.txt")], [0, 1]
    for cell, minutes in ((pretrained, 1.0), (scratch, 2.0)):
        for place, split in enumerate(splits):
            for seed in seeds:
                folder = cell.folder(tmp_path, split, seed)
                folder.mkdir()
                (folder / "minutes.json").write_text(json.dumps(minutes + place))
    asked = []

    def aggregate(folders):
        asked.append([folder.name for folder in folders])
        figures = {"average_precision": MeanStd(0.98, 0.01, 2), "fp_at_full_recall": MeanStd(3.0, None, 1)}
        return SimpleNamespace(figures={**figures, "pixel_f1": MeanStd(None, None, 0)})

    monkeypatch.setattr(encoder_comparison, "aggregate_runs", aggregate)
    table = describe([pretrained, scratch], splits, tmp_path, seeds).splitlines()
    assert table[0] == "| experiment | defective | AP | FP at FN = 0 | pixel F1 | minutes |"
    assert table[2] == "| a_mobilenet | all | 0.980 ± 0.010 | 3.0 | – | 1.5 |"
    assert table[3] == "| a_compact | 5 | 0.980 ± 0.010 | 3.0 | – | 2.5 |"
    assert asked[1] == [f"a_compact_fold_{fold}_5_seed{seed}" for seed in seeds for fold in (0, 1)]
    assert Cell(Path("b.toml"), 3).folder(tmp_path, None, 2).name == "b_own_3_seed2"
