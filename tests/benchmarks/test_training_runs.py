"""The training benchmarks select the stated defects and steps, and print the right figures."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import encoder_comparison, few_defects, training_runs
from benchmarks.defect_subsets import keep_defects
from benchmarks.training_runs import Cell
from datasets.sample import Record
from segdec.errors import ConfigError, RunError
from training.experiment_file import load_experiment
from training.metrics.aggregation import MeanStd

COMPACT = Path(__file__).parents[2] / "training" / "experiments" / "kolektor_compact.toml"


def records():
    splits = ["train"] * 10 + ["val"] * 3 + ["test"] * 3
    return [
        Record(f"{number:02}", Path(f"{number}.png"), None, label=number % 2, group=str(number), split=split)
        for number, split in enumerate(splits)
    ]


@pytest.mark.parametrize("defects", [0, 3])
def test_a_number_of_defective_training_photographs_is_kept(defects):
    kept = list(keep_defects(records(), defects, seed=0))
    assert sum(record.label for record in kept if record.split == "train") == defects
    others = [record for record in records() if not (record.split == "train" and record.label)]
    if not defects:
        others = [record for record in others if not (record.split == "val" and record.label)]
    assert [record for record in kept if record in others] == others
    with pytest.raises(ConfigError, match="--defects 6: the training split has only 5"):
        keep_defects(records(), 6, seed=0)


def test_a_run_with_other_settings_is_an_error(tmp_path, monkeypatch):
    config = load_experiment(COMPACT)
    finished = SimpleNamespace(experiment=lambda: config)
    monkeypatch.setattr(training_runs.RunFolder, "finished", lambda _: finished)
    cell = Cell(COMPACT, None)
    folder = cell.folder(tmp_path, None, 3)
    folder.mkdir()
    (folder / "minutes.json").write_text("1")
    training_runs.train_cell(cell, tmp_path, None, 3, ["--stages.joint.steps", "2"])
    with pytest.raises(RunError, match="has batch_size = 2, expected 5"):
        training_runs.train_cell(cell, tmp_path, None, 3, ["--batch-size", "5"])


def ran(fold, place, average_precision):
    metrics = SimpleNamespace(average_precision=average_precision)
    return SimpleNamespace(fold=fold, place=place, metrics=metrics)


def test_tables_have_the_figures_of_their_runs(tmp_path, monkeypatch):
    splits, cell = [Path("fold_0.txt"), Path("fold_1.txt")], Cell(Path("a_compact.toml"), 5)
    for minutes, split in enumerate(splits, 1):
        folder = cell.folder(tmp_path, split, 0)
        folder.mkdir()
        (folder / "minutes.json").write_text(json.dumps(minutes))
    figures = {
        "average_precision": MeanStd(0.98, 0.01, 2),
        "auroc": MeanStd(0.9, None, 1),
        "fp_at_full_recall": MeanStd(3.0, None, 1),
        "pixel_f1": MeanStd(None, None, 0),
    }
    aggregate = SimpleNamespace(figures=figures, runs=[ran(0, 0, 0.5), ran(1, 0, 1.0)])
    monkeypatch.setattr(training_runs, "aggregate_runs", lambda _: aggregate)
    row = encoder_comparison.tabulate([cell], splits, tmp_path, [0]).splitlines()[2]
    assert row == "| a_compact | 5 | 0.980 ± 0.010 | 3.0 | – | 1.5 |"
    row = few_defects.tabulate([cell], splits, tmp_path, [0]).splitlines()[2]
    assert row == "| 5 | 0.750 | 0.980 ± 0.010 | 0.900 | 3.0 | 1.5 |"


def test_each_split_number_and_seed_is_trained(monkeypatch, capsys):
    trained = []
    monkeypatch.setattr(few_defects, "train_cell", lambda *words: trained.append(words))
    monkeypatch.setattr(few_defects, "tabulate", lambda *_: "the table")
    words = ["--defects", "0", "all", "--seeds", "7", "--splits", "a.txt", "b.txt", "--runs", "runs"]
    few_defects.main([str(COMPACT), *words, "--", "--augmentation.synthetic", "0.5"])
    assert capsys.readouterr().out == "the table\n"
    assert trained == [
        (Cell(COMPACT, defects), Path("runs"), Path(split), 7, ["--augmentation.synthetic", "0.5"])
        for defects in (0, None)
        for split in ("a.txt", "b.txt")
    ]
