"""What few defects teach: what stands in a line of the table."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import encoder_comparison, few_defects
from benchmarks.encoder_comparison import Cell
from training.metrics.aggregation import MeanStd

EXPERIMENT = Path(__file__).parents[2] / "training" / "experiments" / "kolektor_mobilenet.toml"


def ran(fold, place, average_precision):
    return SimpleNamespace(
        fold=fold, place=place, metrics=SimpleNamespace(average_precision=average_precision)
    )


def test_splits_are_averaged_before_seeds():
    runs = [ran(0, 0, 0.5), ran(1, 0, 1.0), ran(0, 1, 0.7), ran(1, 1, 0.9)]
    spread = few_defects.average_precision_by_split(SimpleNamespace(runs=runs))
    assert (round(spread.mean, 6), round(spread.std, 6)) == (0.775, 0.035355)


def test_figures_stand_in_their_line(tmp_path, monkeypatch):
    splits, seeds, cell = [Path("fold_0.txt"), Path("fold_1.txt")], [0], Cell(EXPERIMENT, 0)
    for split, minutes in zip(splits, (1.0, 2.0), strict=True):
        folder = cell.folder(tmp_path, split, 0)
        folder.mkdir()
        (folder / "minutes.json").write_text(json.dumps(minutes))
    figures = {
        "average_precision": MeanStd(0.8, None, 1),
        "auroc": MeanStd(0.9, None, 1),
        "fp_at_full_recall": MeanStd(3.0, None, 1),
    }
    aggregate = SimpleNamespace(figures=figures, runs=[ran(0, 0, 0.5), ran(1, 0, 1.0)])
    monkeypatch.setattr(encoder_comparison, "aggregate_runs", lambda _: aggregate)
    table = few_defects.describe([cell], splits, tmp_path, seeds).splitlines()
    assert table[2] == "| 0 | 0.750 | 0.800 | 0.900 | 3.0 | 1.5 |"


def test_each_split_number_and_seed_is_trained(monkeypatch, capsys):
    trained = []
    monkeypatch.setattr(few_defects, "train_cell", lambda *words: trained.append(words))
    monkeypatch.setattr(few_defects, "describe", lambda *_: "the table")
    words = ["--defects", "0", "all", "--seeds", "7", "--splits", "a.txt", "b.txt", "--runs", "runs"]
    few_defects.main([str(EXPERIMENT), *words, "--", "--augmentation.synthetic", "0.5"])
    assert capsys.readouterr().out == "the table\n"
    assert trained == [
        (Cell(EXPERIMENT, defects), Path("runs"), Path(split), 7, ["--augmentation.synthetic", "0.5"])
        for defects in (0, None)
        for split in ("a.txt", "b.txt")
    ]


def test_a_single_run_is_refused_before_it_is_trained(monkeypatch, capsys):
    monkeypatch.setattr(few_defects, "train_cell", None)  # would fail
    with pytest.raises(SystemExit):
        few_defects.main([str(EXPERIMENT), "--seeds", "0"])
    assert "One seed of one split has no spread" in capsys.readouterr().err
