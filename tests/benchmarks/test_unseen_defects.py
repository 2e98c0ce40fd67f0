"""Kinds of defects that are left out of training."""

import subprocess
from pathlib import Path

import pytest

from benchmarks import unseen_defects
from benchmarks.suite.fitting import FitSettings
from benchmarks.suite.sets import SuiteSet
from benchmarks.unseen_defects import MARKER, UnseenResult, UnseenRun, leave_out, tabulate
from datasets.sample import Dataset, DataSetItem
from segdec.errors import ConfigError

SETTINGS = FitSettings(Path("out"), 1.0, "none")


@pytest.fixture
def source():
    def item(split, label, number):
        return DataSetItem(
            f"{split}{label}{number}", Path("x.png"), None, label, f"{split}{label}{number}", split
        )

    items = tuple(item(split, label, n) for split in ("train", "test") for label in (0, 1, 2) for n in (0, 1))
    return SuiteSet("parts", Path("parts"), "folder", Dataset(("good", "dent", "scratch"), items))


def test_each_kind_is_left_out_of_training_and_tested_alone(source):
    reduced = dict(leave_out(source))
    assert list(reduced) == ["dent", "scratch"]
    for label, part in enumerate(reduced.values(), start=1):
        assert {item.label for item in part.training(None, 0)} == {0, 3 - label}
        assert {item.label for item in part.test} == {0, label}


def test_one_kind_of_defect_is_too_few(source):
    (_, part), _ = leave_out(source)
    with pytest.raises(ConfigError, match=r"'parts' show 1 kind of defects\. Expected at least two"):
        list(leave_out(part))


def result(unseen, auroc, without, seed=0):
    common = {"average_precision": 0.5, "seconds": 1.0, "defects": None, "good": 4, "defective": 2}
    counts = dict.fromkeys(("missed", "false_alarms", "reviews", "steps"), 0)
    return UnseenResult(
        name="parts",
        settings={},
        auroc=auroc,
        seed=seed,
        excess_cost=0.0,
        mask_iou=None,
        ms_per_photograph=1.0,
        unseen=unseen,
        auroc_without=without,
        **common,
        **counts,
    )


def test_the_table_has_medians_of_the_seeds_and_the_mean_of_the_kinds(source):
    runs = [
        UnseenRun(part, None, seed, SETTINGS, kind) for seed in (0, 1) for kind, part in leave_out(source)
    ]
    precisions = {"dent": [(0.75, 0.5), (1.0, 0.75)], "scratch": [(0.5, 0.625), (0.5, 0.625)]}
    results = {run.name: result(run.unseen, *precisions[run.unseen][run.seed]) for run in runs}
    _, _, dent, scratch, means = tabulate(runs, results).splitlines()
    assert dent == "| parts | dent | 4 good, 2 defective | 0.875 | 0.625 | +0.250 |"
    assert scratch.endswith("| 0.500 | 0.625 | -0.125 |")
    assert means.endswith("| 0.688 | 0.625 | +0.062 |")


def test_the_command_writes_stored_results_and_names_what_failed(source, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(unseen_defects, "list_sets", lambda *_: ([source], {}))
    file, out = tmp_path / "table.md", tmp_path / "out"
    file.write_text(f"{MARKER}\n{MARKER}\n")
    arguments = [str(tmp_path), "--out", str(out), "--write", str(file), "--encoder-weights", "none"]
    failed = subprocess.CompletedProcess([], 2)
    monkeypatch.setattr("benchmarks.suite.fitting.subprocess.run", lambda *_, **__: failed)
    with pytest.raises(SystemExit):
        unseen_defects.main(arguments)
    assert "failed: parts_without_dent_seed0" in capsys.readouterr().err
    settings = {"minutes": 3.0, "weights": "none", "flags": []}
    for kind in ("dent", "scratch"):
        stored = result(kind, 0.75, 0.5)
        object.__setattr__(stored, "settings", settings)
        stored.save(out / "results" / f"parts_without_{kind}_seed0.json")
    unseen_defects.main(arguments)
    assert "| parts | dent |" in file.read_text() and "`fit --minutes 3" in file.read_text()
