"""The suite trains without test photographs, continues, names failures, and writes one table."""

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from benchmarks.suite import __main__ as suite
from benchmarks.suite import fitting, leave_one_out
from benchmarks.suite.fitting import FitRun, FitSettings
from benchmarks.suite.results import FitResult, Result, lowest_cost
from benchmarks.suite.sets import SuiteSet, list_sets, load_set
from benchmarks.suite.table import Row, replace_marked, tabulate
from datasets.layouts.toy import write_toy
from datasets.sample import Dataset, DataSetItem
from segdec.errors import ConfigError, RunError

FIT = FitResult(
    name="parts",
    settings={"minutes": 1.0, "weights": "none", "flags": []},
    average_precision=0.75,
    auroc=0.5,
    seconds=61.2,
    defects=None,
    seed=0,
    good=40,
    defective=8,
    missed=1,
    false_alarms=2,
    excess_cost=4.0,
    reviews=0,
    mask_iou=None,
    steps=100,
    ms_per_photograph=12.3,
)
HEAD = Result(name="parts", settings={}, average_precision=0.5, auroc=0.625, seconds=1)
MEMORY = replace(HEAD, average_precision=0.25, auroc=0.75)

MARKER = "<!-- suite -->"


def items(*numbers, split="train"):
    return [
        DataSetItem(f"{n:02}", Path(f"{n}.png"), None, label=n % 2, group=str(n), split=split)
        for n in numbers
    ]


def test_the_lowest_cost_is_that_of_the_best_threshold():
    defective = [False, True, False, False, True]
    scores = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert lowest_cost(defective, scores, 10.0) == 2  # two false alarms from 0.2
    assert lowest_cost(defective, scores, 1.5) == 1.5  # one miss from 0.5
    assert lowest_cost([False, False], [0.2, 0.3], 10.0) == 0


# === Sets ===


def test_a_split_file_gives_the_photographs_for_training_and_testing(toy_root):
    lines = dict(
        line.split()[::-1] for line in (toy_root / "splits.txt").read_text().splitlines() if line[0] != "#"
    )
    source = load_set(toy_root)
    assert {item.name for item in source.test} == {name for name in lines if lines[name] == "test"}
    assert {item.name for item in source.training(None, 0)} == {
        name for name in lines if lines[name] in ("train", "val")
    }
    assert not any(item.label for item in source.training(0, 0))
    few = [item.name for item in source.training(2, 7) if item.label]
    assert len(few) == 2
    assert few == [item.name for item in source.training(2, 7) if item.label]


def test_later_items_of_kolektorsdd_are_for_testing(tmp_path):
    for item in ("kos15", "kos16"):
        for part in (0, 1):
            (tmp_path / item).mkdir(exist_ok=True)
            mask = np.full((8, 8), 255 * part, np.uint8)
            cv2.imwrite(str(tmp_path / item / f"Part{part}.jpg"), np.full((8, 8), 99, np.uint8))
            cv2.imwrite(str(tmp_path / item / f"Part{part}_label.bmp"), mask)
    source = load_set(tmp_path)
    assert [item.name for item in source.test] == ["kos16/Part0", "kos16/Part1"]
    assert [item.name for item in source.training(None, 0)] == ["kos15/Part0", "kos15/Part1"]


def test_sets_that_cannot_be_measured_are_named(tmp_path, toy_root, capsys):
    data = tmp_path / "data"
    data.mkdir()
    (data / "toy").symlink_to(toy_root)
    write_toy(data / "untested", 24, size=32)
    (data / "untested" / "splits.txt").write_text("train good\ntrain defect\n")
    sets, errors = list_sets(data, [])
    assert [source.name for source in sets] == ["toy"]
    assert "has no good photographs for testing, no defective photographs for testing" in errors["untested"]
    sets, errors = list_sets(data, ["toy", "absent"])
    assert [source.name for source in sets] == ["toy"]
    assert f"{data / 'absent'} does not exist" in errors["absent"]
    with pytest.raises(ConfigError, match="is not a folder"):
        list_sets(tmp_path / "nothing", [])
    assert run_suite(data, "--sets", "untested") == 2
    assert "No data set of" in capsys.readouterr().err


# === Measurements ===


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of two sets whose measurements are made up: those of `bad` fail."""
    sets = [
        SuiteSet(name, tmp_path / name, "folder", Dataset(("good", "defect"), ()))
        for name in ("bad", "parts")
    ]
    measured = []

    def measure(run):
        measured.append(run.name)
        if run.source.name == "bad":
            raise RunError("`fit` exited with 2: error: too few")
        average_precision = FIT.average_precision + run.seed / 8
        return replace(FIT, settings=run.settings, average_precision=average_precision, defects=run.defects)

    monkeypatch.setattr(
        suite, "list_sets", lambda _, names: ([s for s in sets if s.name in (names or "bad parts")], {})
    )
    monkeypatch.setattr(FitRun, "measure", measure)
    return measured


def run_suite(tmp_path, *arguments):
    """Returns the exit code; 0 without one."""
    flags = ["--out", str(tmp_path / "out"), "--encoder-weights", "none", "--seeds", "0", "1"]
    try:
        suite.main([str(tmp_path), *flags, *arguments])
    except SystemExit as left:
        return left.code
    return 0


def test_stored_results_are_not_measured_again(data, tmp_path, capsys):
    assert run_suite(tmp_path, "--sets", "parts") == 0
    assert data == ["parts_all_seed0", "parts_all_seed1"]
    printed = capsys.readouterr().out
    assert "| parts | all | 0.812 | 0.500 | 1 of 8 | 2 of 40 | 4 | 0 | – | 61 | 100 | 12 |" in printed
    assert "better baseline" not in printed
    (tmp_path / "out" / "results" / "parts_all_seed1.json").unlink()
    assert run_suite(tmp_path, "--sets", "parts") == 0
    assert data[2:] == ["parts_all_seed1"]
    assert run_suite(tmp_path, "--sets", "parts", "--minutes", "5") == 2
    assert "was measured with {'minutes': 3.0" in capsys.readouterr().err
    assert len(data) == 3
    (tmp_path / "out" / "results" / "parts_all_seed1.json").write_text("{")
    assert run_suite(tmp_path, "--sets", "parts") == 2
    assert "is not a result" in capsys.readouterr().err


def test_a_failure_does_not_stop_the_others(data, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"{MARKER}\n{MARKER}\n")
    assert run_suite(tmp_path, "--write", str(page)) == 1
    printed = capsys.readouterr()
    assert "failed: bad_all_seed0: `fit` exited with 2: error: too few" in printed.err
    assert "page.md was not changed" in printed.err
    assert "| parts |" in printed.out
    assert "| bad |" not in printed.out
    assert page.read_text() == f"{MARKER}\n{MARKER}\n"
    assert run_suite(tmp_path, "--write", str(page), "--sets", "parts") == 0
    assert "| parts |" in page.read_text()
    assert data.count("bad_all_seed0") == 1


def test_defects_are_a_number_or_all(data, tmp_path):
    assert run_suite(tmp_path, "--sets", "parts", "--defects", "all", "3") == 0
    assert data == [f"parts_{amount}_seed{seed}" for seed in (0, 1) for amount in ("all", "3")]
    assert run_suite(tmp_path, "--defects", "-1") == 2


@pytest.mark.usefixtures("data")
def test_fit_gets_the_encoder_too(tmp_path, capsys):
    assert run_suite(tmp_path, "--sets", "parts", "--encoder", "resnet50", "--", "--strict") == 0
    assert "`fit --minutes 3 --encoder-weights none --encoder resnet50 --strict`" in capsys.readouterr().out


def test_fit_sees_the_training_photographs_alone_and_its_last_line_is_the_error(tmp_path, monkeypatch):
    dataset = Dataset(("good", "defect"), (*items(0, 1, 2, 3), *items(4, 5, split="test")))
    source = SuiteSet("parts", tmp_path / "parts", "folder", dataset)
    run = FitRun(source, 1, 4, FitSettings(tmp_path, 0.5, "none", ("--strict",)))
    started = []

    def start(command, stdout, **_):
        started.append(command)
        stdout.write("profile\nerror: too few\n")
        return type("Done", (), {"returncode": 2})

    monkeypatch.setattr(fitting.subprocess, "run", start)
    with pytest.raises(
        RunError, match=r"`fit` exited with 2: error: too few \(all output: .*parts_1_seed4.txt"
    ):
        fitting.run_fit(run)
    arguments = started[0]
    assert arguments[1:5] == ["-m", "training", "fit", str(tmp_path / "parts")]
    assert arguments[-1] == "--strict"
    lines = Path(arguments[arguments.index("--splits") + 1]).read_text().split()
    assert lines[::2] == ["train"] * 3
    assert set(lines[1::2]) in ({"00", "01", "02"}, {"00", "02", "03"})


# === Table ===


def test_the_table_has_medians_means_and_differences():
    seeds = [replace(FIT, average_precision=value, mask_iou=0.5) for value in (0.5, 0.625, 1.0)]
    good_only = replace(FIT, defects=0, missed=0)
    baselines = {"head": HEAD, "memory": MEMORY}
    rows = [Row(seeds, baselines), Row([FIT]), Row([good_only], baselines)]
    lines = tabulate(rows).splitlines()
    counts, pace = "1 of 8 | 2 of 40 | 4 | 0", "61 | 100 | 12"
    memory = "– / – | 0.250 / 0.750 | +0.500 / -0.250"
    both = "0.500 / 0.625 | 0.250 / 0.750 | +0.125 / -0.250"
    assert lines[2:] == [
        f"| parts | all | 0.625 | 0.500 | {counts} | 0.500 | {pace} | {both} |",
        f"| parts | all | 0.750 | 0.500 | {counts} | – | {pace} | – / – | – / – | – / – |",
        f"| parts | 0 | 0.750 | 0.500 | 0{counts[1:]} | – | {pace} | {memory} |",
        f"| mean | all | 0.688 | 0.500 |  |  |  |  | 0.500 |  |  |  | {both} |",
    ]
    assert len({line.count("|") for line in lines}) == 1


def test_only_the_text_between_two_markers_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{MARKER}\nold\n{MARKER}\nafter\n")
    replace_marked(page, "new\n", MARKER)
    assert page.read_text() == f"before\n{MARKER}\n\nnew\n\n{MARKER}\nafter\n"
    page.write_text(MARKER)
    with pytest.raises(ConfigError, match=r"has 1 lines '<!-- suite -->'\. Expected two"):
        replace_marked(page, "new", MARKER)
    with pytest.raises(ConfigError, match="cannot be read"):
        replace_marked(tmp_path / "none.md", "new", MARKER)


# === Baselines ===


class TestMemoryBaseline:
    """On features that are made up."""

    def test_the_patches_chosen_are_far_from_each_other(self):
        from benchmarks.suite.memory_baseline import choose_spread

        patches = np.array([[0.0, 0], [1, 0], [9, 0], [0, 5]], np.float32)
        assert choose_spread(patches, 3).tolist() == [[0, 0], [9, 0], [0, 5]]
        assert len(choose_spread(patches, 9)) == 4

    def test_distances_are_to_the_nearest_patch(self):
        from benchmarks.suite.memory_baseline import nearest_distances

        memory = np.array([[0.0, 0], [10, 0]], np.float32)
        distances = nearest_distances(np.array([[[3.0, 4], [10, 2]]], np.float32), memory)
        assert distances == pytest.approx(np.array([[5.0, 2.0]]))


@pytest.mark.slow
def test_both_baselines_separate_a_bright_square(tmp_path, tiny_encoder, tiny_encoder_weights):
    from benchmarks.suite import head_baseline, memory_baseline
    from benchmarks.suite.features import load_encoder
    from benchmarks.suite.results import measure_scores

    random = np.random.default_rng(0)
    items = []
    for number in range(24):
        image, mask = random.integers(90, 110, (64, 64), np.uint8), np.zeros((64, 64), np.uint8)
        if number % 2:
            image[24:40, 24:40] = 250
            mask[24:40, 24:40] = 255
            cv2.imwrite(str(tmp_path / f"{number}_mask.png"), mask)
        cv2.imwrite(str(tmp_path / f"{number}.png"), image)
        mask_file = tmp_path / f"{number}_mask.png" if number % 2 else None
        items.append(DataSetItem(f"{number}", tmp_path / f"{number}.png", mask_file, number % 2, str(number)))
    train, test, encode = items[:14], items[14:], load_encoder(tiny_encoder, str(tiny_encoder_weights))
    labels = [item.label > 0 for item in test]
    size = (64, 64)
    assert measure_scores(labels, memory_baseline.score(train, test, encode, size)) == (1.0, 1.0)
    assert measure_scores(labels, head_baseline.score(train, test, encode, size, 60)) == (1.0, 1.0)


@pytest.mark.slow
def test_the_command_trains_measures_and_writes(tmp_path):
    write_toy(tmp_path / "data" / "toy", 30, size=32)
    page = tmp_path / "page.md"
    page.write_text(f"{MARKER}\n{MARKER}\n")
    arguments = ["--seeds", "3", "--minutes", "0.05", "--encoder-weights", "none", "--write", str(page)]
    suite.main([str(tmp_path / "data"), "--out", str(tmp_path / "out"), *arguments])
    content = json.loads((tmp_path / "out" / "results" / "toy_all_seed3.json").read_text())
    assert content["good"] + content["defective"] == 6
    assert content["steps"] > 0
    assert "| toy | all |" in page.read_text()


# === Choices ===


def write_results(folder, **precisions):
    for name, values in precisions.items():
        for seed, value in enumerate(values):
            result = replace(FIT, name=name, seed=seed, average_precision=value)
            result.save(folder / "results" / f"{name}_all_seed{seed}.json")


def test_a_choice_is_made_on_all_sets_but_the_one_it_is_measured_on(tmp_path, capsys):
    write_results(tmp_path / "now", a=[0.75, 0.875, 1.0], b=[0.75], c=[0.75], d=[1.0])
    write_results(tmp_path / "other", a=[0.25], b=[0.875], c=[0.875])
    leave_one_out.main([str(tmp_path / "now"), str(tmp_path / "other")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:6] == [
        "| a | 0.875 | 0.250 | other | 0.250 |",
        "| b | 0.750 | 0.875 | now | 0.750 |",
        "| c | 0.750 | 0.875 | now | 0.750 |",
        "| mean | 0.792 | 0.667 |  | 0.583 |",
    ]


@pytest.mark.parametrize("folders", [["now"], ["now", "empty"], ["now", "few"]])
def test_a_choice_needs_two_folders_and_three_common_sets(tmp_path, capsys, folders):
    write_results(tmp_path / "now", a=[0.5], b=[0.5], c=[0.5])
    write_results(tmp_path / "few", a=[0.5], b=[0.5])
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as ended:
        leave_one_out.main([str(tmp_path / folder) for folder in folders])
    assert ended.value.code == 2
    assert "Expected" in capsys.readouterr().err
