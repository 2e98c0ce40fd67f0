import json
import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from datasets.checked_photograph import CheckedPhotograph
from datasets.name_lists import read_name_list
from datasets.near_duplicates import normalized_thumbnail
from datasets.sample import DataSetItem
from datasets.splitting import SPLITS
from segdec.artifact import (
    ExpectedOutcomes,
    ExpectedParts,
    OperatingPoint,
    OperatingPoints,
    PartShare,
    open_artifact,
    write_artifact,
)
from segdec.config import Thresholds
from segdec.errors import ConfigError, RunError

pytest.importorskip("tensorflow")

from training import calibrate as calibration
from training.__main__ import main
from training.calibrate import calibrate_run, score_with_runs, split_into_folds
from training.config import ThresholdConfig
from training.experiment_file import load_experiment
from training.formatting import format_score
from training.run.folder import RunFolder
from training.run.lock import lock_folder
from training.trainer import Trainer


@pytest.fixture
def run(finished_run, tmp_path):
    """A copy of a finished run that was never evaluated."""
    return shutil.copytree(
        finished_run, tmp_path / "run", ignore=shutil.ignore_patterns("*.csv", "metrics.json")
    )


@pytest.fixture(scope="module", autouse=True)
def _measure_each_network_once():
    """Thresholds do not change what `calibrate` measures of a split: the log-odds and the masks."""
    measure, measured = calibration.measure_split, {}

    def measure_once(folder, split):
        key = folder.weights_path.read_bytes(), split
        if key not in measured:
            measured[key] = measure(folder, split)
        return measured[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "measure_split", measure_once)
        yield


def result_of(run):
    return RunFolder.finished(run).result()


def photograph(name, label, group, digest=None):
    item = DataSetItem(name, Path(f"{name}.png"), None, label, group, "train")
    return CheckedPhotograph(item, 8, 8, 1, None, digest or name)


# === Other settings ===


def test_other_costs_choose_another_threshold_and_change_nothing_else(run, make_run, make_result, tmp_path):
    before = result_of(run)
    made = make_run(tmp_path / "made", [make_result("any", 0, 0.1)])  # an earlier evaluation
    for name in ("metrics.json", "predictions.csv", "pixel_scores.npz"):
        shutil.copy(made / name, run)
    said, scores, *_, again, advice = calibrate_run(run, ThresholdConfig(miss_cost=1000.0))
    after = result_of(run)
    assert after.model.thresholds.score < before.model.thresholds.score
    assert after.model.calibration == before.model.calibration
    assert after.model.thresholds.mask == before.model.thresholds.mask
    assert after.data_fingerprint == before.data_fingerprint
    score = format_score(after.model.thresholds.score)
    assert said.startswith(f"Defective from a score of {score}, chosen on ")
    assert said.endswith("defective photographs of validation.")
    assert scores.startswith("Scores are probabilities for a share of ")
    assert RunFolder(run).experiment().threshold.miss_cost == 1000
    assert again.startswith("Evaluated again on the split 'test':")
    assert advice.endswith(f"python -m training export {run} MODEL --overwrite")
    assert json.loads((run / "metrics.json").read_text())["threshold"] == after.model.thresholds.score


def test_a_run_of_an_earlier_version_gets_limits_of_its_photographs(run, capsys):
    folder, before = RunFolder(run), result_of(run)
    trained = before.training_photographs
    assert trained is not None and trained.limits is not None
    without = before.model_copy(update={"training_photographs": trained.model_copy(update={"limits": None})})
    folder.save_thresholds(folder.experiment(), without)
    list(calibrate_run(run, ThresholdConfig()))
    assert result_of(run).training_photographs == trained
    experiment = folder.experiment()
    moved = experiment.data.model_copy(update={"root": "elsewhere"})
    folder.save_thresholds(experiment.model_copy(update={"data": moved}), without)
    list(calibrate_run(run, ThresholdConfig(score=0.4)))
    assert result_of(run).training_photographs == without.training_photographs
    assert "note: The model inspects any photograph: its training photographs" in capsys.readouterr().err


def test_the_command_takes_settings_of_thresholds_alone(run, capsys):
    main(["calibrate", str(run), "--threshold.miss-cost", "3", "--threshold.review"])
    assert "Defective from a score of" in capsys.readouterr().out
    settings = RunFolder(run).experiment().threshold
    assert (settings.miss_cost, settings.review) == (3.0, True)
    for words, said in [
        (["--seed", "1"], "--seed cannot change in a finished run"),
        (["--threshold.misscost", "1"], "Did you mean '--threshold.miss-cost'"),
        (["--threshold.miss-cost", "0"], "greater than or equal to 0.000001"),
        (["--threshold.score", "40"], "threshold.score: Input should be less than 1 (got '40')"),
    ]:
        with pytest.raises(SystemExit):
            main(["calibrate", str(run), *words])
        assert said in capsys.readouterr().err


def test_a_score_that_is_set_keeps_all_other_choices(run, capsys, monkeypatch):
    main(["calibrate", str(run), "--threshold.review"])
    before = result_of(run)
    capsys.readouterr()
    monkeypatch.setattr("training.calibrate.measure_split", None)  # no photograph is read
    main(["calibrate", str(run), "--threshold.score", "0.4", "--no-threshold.review"])
    printed, after = capsys.readouterr().out, result_of(run)
    changed = {"score": 0.4, "review": None}
    assert after.model.thresholds == before.model.thresholds.model_copy(update=changed)
    assert after.model.calibration == before.model.calibration
    assert after.scored == before.scored
    assert after.operating_points[0].threshold == 0.4
    assert after.operating_points[1:] == before.operating_points[1:]
    assert printed.startswith(f"Defective from a score of 0.400, as set; calibrated on {before.chosen_by}.")
    assert "At this threshold " in printed


# === Exported models ===


def with_points(folder, thresholds, points, build):
    """Writes a copy of the tiny model with other thresholds and operating points."""
    manifest = open_artifact(build).manifest
    changes = {"thresholds": thresholds, "operating_points": points}

    def copy(staged):
        shutil.copytree(build, staged, dirs_exist_ok=True)
        for name in ("manifest.json", "manifest.sha256"):
            (staged / name).unlink()
        return manifest.model_copy(update=changes)

    write_artifact(folder, copy)
    return folder


def test_a_score_is_set_in_an_exported_model(tiny_artifact, tmp_path, capsys):
    share = PartShare(count=1, parts=20, low=0.0, high=0.3)
    points = [
        OperatingPoint(goal="chosen", threshold=0.5, rejected=share, missed=None),
        OperatingPoint(goal="lowest cost", threshold=0.25, rejected=share, missed=share),
    ]
    own = OperatingPoints(measured_on="40 photographs", points=tuple(points))
    former = Thresholds(score=0.5, mask=0.6, review=0.3)
    model = with_points(tmp_path / "model", former, own, tiny_artifact)
    (model / "signatures").mkdir()
    (model / "signatures" / f"{16 * 'a'}.sig").write_bytes(bytes(64))
    before = open_artifact(model)
    main(["calibrate", str(model), "--threshold.score", "0.4"])
    printed, after = capsys.readouterr().out, open_artifact(model)
    after.check_files()
    assert after.manifest.thresholds == Thresholds(score=0.4, mask=0.6, review=0.3)
    assert after.manifest.files == before.manifest.files and after.sha256 != before.sha256
    chosen, offered = after.manifest.operating_points.points
    assert (chosen.threshold, chosen.rejected, offered) == (0.4, None, points[1])
    assert after.manifest.warnings[-1].startswith("The threshold was set from 0.500 to 0.400 after")
    assert "Defective from a score of 0.400, before from 0.500." in printed
    assert "signatures were removed" in printed and not (model / "signatures").exists()
    main(["calibrate", str(model), "--threshold.score=0.25"])
    printed, last = capsys.readouterr().out, open_artifact(model).manifest
    assert last.thresholds == Thresholds(score=0.25, mask=0.6) and "review, 0.300, is not below" in printed
    assert last.operating_points.points[0].missed == share


@pytest.mark.parametrize("review", [None, 0.3])
def test_the_errors_at_an_offered_threshold_are_known_without_review(tiny_artifact, tmp_path, review):
    """An offered point counts parts for review as missed."""
    none, some = (PartShare(count=count, parts=10, low=0.0, high=0.5) for count in (0, 2))
    parts = ExpectedParts(value=0, low=0, high=0)
    expected = ExpectedOutcomes(defect_rate=0.1, rejected=parts, review=parts, missed=parts)
    chosen = OperatingPoint(goal="chosen", threshold=0.5, rejected=none, missed=none)
    errors = {"threshold": 0.8, "rejected": none, "missed": some, "expected": expected}
    offered = OperatingPoint(goal="at most 1 % rejected", note="few parts", **errors)
    own = OperatingPoints(measured_on="40 photographs", points=(chosen, offered))
    former = Thresholds(score=0.5, mask=0.6, review=review)
    model = with_points(tmp_path / "model", former, own, tiny_artifact)
    main(["calibrate", str(model), "--threshold.score", "0.8"])
    known = errors if review is None else {"threshold": 0.8, "rejected": None, "missed": None}
    found = open_artifact(model).manifest.operating_points
    assert found.points == (OperatingPoint(goal="chosen", **known), offered)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "is an exported model. Expected --threshold.score"),
        (["--threshold.miss-cost", "3"], "is an exported model. Expected --threshold.score"),
        (["--threshold.score", "0.4", "--folds", "3"], "is an exported model. Expected --threshold.score"),
        (["--threshold.score", "40"], "score: Input should be less than 1 (got '40')"),
    ],
)
def test_other_settings_of_an_exported_model_are_refused(tiny_artifact, capsys, words, said):
    before = open_artifact(tiny_artifact).sha256
    with pytest.raises(SystemExit):
        main(["calibrate", str(tiny_artifact), *words])
    assert said in capsys.readouterr().err
    assert open_artifact(tiny_artifact).sha256 == before


def test_other_settings_end_a_score_that_was_set(run):
    main(["calibrate", str(run), "--threshold.score", "0.4"])
    assert RunFolder(run).experiment().threshold.score == 0.4
    main(["calibrate", str(run), "--threshold.miss-cost", "3"])
    assert RunFolder(run).experiment().threshold.score is None
    assert result_of(run).model.thresholds.score != 0.4


def test_a_run_that_another_process_holds_keeps_its_limits(run):
    before, held = result_of(run), lock_folder(run)
    with pytest.raises(RunError, match="is in use by"):
        list(calibrate_run(run, ThresholdConfig(miss_cost=3.0)))
    held.release()
    assert result_of(run) == before


@pytest.mark.slow
def test_limits_chosen_anew_are_kept_when_the_training_starts_again(run, tiny_experiment, capsys):
    list(calibrate_run(run, ThresholdConfig(miss_cost=1000.0)))
    chosen, weights = result_of(run), (run / "network.weights.h5").read_bytes()
    (run / "network.weights.h5").unlink()
    place = ["--name", run.name, "--runs", str(run.parent)]
    Trainer(load_experiment(tiny_experiment, place)).run()
    assert result_of(run) == chosen
    assert RunFolder(run).experiment().threshold.miss_cost == 1000
    assert len((run / "network.weights.h5").read_bytes()) == len(weights)  # what was lost is written again
    assert f"note: '{run}' has finished and keeps its thresholds" in capsys.readouterr().err


# === Folds ===


def test_folds_keep_groups_together_and_have_both_kinds_each():
    photographs = [
        photograph(f"{group}/{place}", int(group in "ab" and place == 0), group)
        for group in "abcdef"
        for place in (0, 1)
    ]
    first, second = split_into_folds(photographs, 2, seed=0)
    assert first | second == set("abcdef")
    assert len(first & {"a", "b"}) == len(second & {"a", "b"}) == 1


def exposures():
    """Twelve tiles, four of them defective, at two exposures, each photograph a group of its own."""
    draw = np.random.default_rng(0)
    for tile in range(12):
        surface = cv2.resize(draw.uniform(40, 200, (24, 24)), (64, 64), interpolation=cv2.INTER_CUBIC)
        for exposure in ("dark", "light"):
            image = np.clip(surface * (0.6 if exposure == "dark" else 1), 0, 255).astype(np.uint8)[..., None]
            name = f"{tile} {exposure}"
            yield replace(photograph(name, int(tile < 4), name), thumbnail=normalized_thumbnail(image))


def test_folds_keep_near_duplicates_together():
    for names in split_into_folds(list(exposures()), 2, seed=1):
        tiles = [name.split()[0] for name in names]
        assert len(tiles) == 2 * len(set(tiles)) == 12


@pytest.mark.parametrize(("folds", "said"), [(1, "Expected at least 2"), (3, "0 defective training")])
def test_folds_that_cannot_be_scored_are_refused(folds, said):
    photographs = [photograph(str(place), int(place < 2), str(place)) for place in range(9)]
    with pytest.raises(ConfigError, match=said):
        split_into_folds(photographs, folds, seed=0)


@pytest.mark.slow
def test_folds_score_each_training_photograph_once_by_a_network_that_has_not_seen_it(run):
    folder, splits = RunFolder(run), (run / "splits.txt").read_text().splitlines()
    config, trained = folder.experiment(), [line for line in splits if line.startswith("train")]
    none = {name: stage.model_copy(update={"steps": 0}) for name, stage in config.stages if name != "joint"}
    config = config.model_copy(update={"stages": config.stages.model_copy(update=none)})
    folder.save_thresholds(config, folder.result())  # one stage is enough
    (said, *_) = calibrate_run(run, ThresholdConfig(), folds=2)
    folds = [(run / "folds" / f"{number}_of_2.txt").read_text().splitlines() for number in (1, 2)]
    tested = [line.split(maxsplit=1)[1] for lines in folds for line in lines if line.startswith("test")]
    assert sorted(tested) == sorted(line.split(maxsplit=1)[1] for line in trained)
    assert "of training, scored by 2 other networks." in said
    assert result_of(run).chosen_by in said


# === Other runs ===


@pytest.fixture
def other_run(run, make_run, make_result, tmp_path):
    """Makes the folder of another run that has tested the images of a split of `run`."""

    def make(split, classes=("good", "defect")):
        lines = read_name_list(run / "splits.txt", SPLITS, "split")
        names = [line.name for line in lines if line.word == split]
        labels = [int(name.startswith("defect")) for name in names]
        results = [make_result(name, n, 0.1 + 0.5 * n) for name, n in zip(names, labels, strict=True)]
        return make_run(tmp_path / "other", results, classes=classes)

    return make


def test_what_other_folds_have_tested_is_used(run, other_run):
    other = other_run("train")
    ((photographs, good),) = score_with_runs(RunFolder(run), [other])
    assert good.tolist() == photographs.good.tolist()
    (chosen, *_) = calibrate_run(run, ThresholdConfig(), by=[other])
    counts = f"{len(good)} good and {len(photographs.defective)} defective photographs"
    assert chosen.endswith(f"and {counts} of training, scored by 1 other network.")


@pytest.mark.parametrize(
    ("split", "classes", "message"),
    [
        ("test", ("good", "defect"), "must not be chosen on test data"),
        ("val", ("good", "defect"), "has tested no training photograph"),
        (
            "train",
            ("good", "defect", "dent"),
            r"has the classes good, defect, dent, .* runs of one experiment",
        ),
    ],
)
def test_runs_that_do_not_fit_are_refused(run, other_run, split, classes, message):
    with pytest.raises(RunError, match=message):
        list(score_with_runs(RunFolder(run), [other_run(split, classes)]))
