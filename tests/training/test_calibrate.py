import json
import shutil
from dataclasses import replace

import pytest

from datasets.sample import Record
from segdec.errors import ConfigError, RunError

pytest.importorskip("tensorflow")

from segdec.config import Thresholds
from training.__main__ import main
from training.calibrate import calibrate_run, describe_limits, divide, score_by
from training.config import ThresholdConfig
from training.evaluation.run_evaluation import evaluate_run
from training.evaluation.storage import load_evaluation
from training.experiment_file import load_experiment
from training.run.folder import RunFolder
from training.run.lock import RunLock
from training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


@pytest.fixture
def run(finished_run, tmp_path):
    """A copy of a finished run that was never evaluated."""
    return shutil.copytree(
        finished_run, tmp_path / "run", ignore=shutil.ignore_patterns("*.csv", "metrics.json")
    )


def result_of(run):
    return RunFolder.finished(run).result()


def record(name, label, group):
    return Record(name, f"{name}.png", None, label, group, "train")


# === Other settings ===


def test_other_costs_choose_another_threshold_and_change_nothing_else(run):
    before = result_of(run)
    (said, *_) = calibrate_run(run, ThresholdConfig(miss_cost=1000.0))
    after = result_of(run)
    assert after.model.thresholds.score < before.model.thresholds.score
    assert after.model.calibration == before.model.calibration
    assert after.model.thresholds.mask == before.model.thresholds.mask
    assert after.data_fingerprint == before.data_fingerprint
    assert said.startswith(f"Defective from a score of {after.model.thresholds.score:.4f}, chosen on ")
    assert said.endswith("defective photographs of validation.")
    assert RunFolder(run).experiment().threshold.miss_cost == 1000


def test_a_training_chooses_as_calibrate_does(run):
    before = result_of(run)
    list(calibrate_run(run, ThresholdConfig()))
    assert result_of(run).model == before.model


def test_a_run_that_was_evaluated_is_evaluated_again_at_its_new_limits(run):
    evaluate_run(run, "test")
    *_, said = calibrate_run(run, ThresholdConfig(miss_cost=1000.0))
    assert said.startswith("Measured again on the split 'test':")
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["threshold"] == result_of(run).model.thresholds.score


def test_the_command_takes_settings_of_thresholds_alone(run, capsys):
    main(["calibrate", str(run), "--threshold.miss-cost", "3", "--threshold.review"])
    assert "Defective from a score of" in capsys.readouterr().out
    settings = RunFolder(run).experiment().threshold
    assert (settings.miss_cost, settings.review) == (3.0, True)
    for words, said in [
        (["--seed", "1"], "--seed: a finished run keeps this"),
        (["--threshold.misscost", "1"], "Did you mean '--threshold.miss-cost'"),
        (["--threshold.miss-cost", "0"], "greater than 0"),
    ]:
        with pytest.raises(SystemExit):
            main(["calibrate", str(run), *words])
        assert said in capsys.readouterr().err


def test_a_run_that_is_no_run_or_not_finished_is_refused(run, tmp_path, capsys):
    (run / "result.json").unlink()
    for place, said in [(run, "has not finished"), (tmp_path, "is not a run folder")]:
        with pytest.raises(SystemExit):
            main(["calibrate", str(place)])
        assert said in capsys.readouterr().err


def test_a_run_that_another_process_holds_keeps_its_limits(run):
    before, held = result_of(run), RunLock(run)
    with pytest.raises(RunError, match="is in use by"):
        list(calibrate_run(run, ThresholdConfig(miss_cost=3.0)))
    held.release()
    assert result_of(run) == before


def test_limits_chosen_anew_outlive_another_start_of_the_training(run, tiny_experiment):
    list(calibrate_run(run, ThresholdConfig(miss_cost=1000.0)))
    chosen = result_of(run)
    place = ["--name", run.name, "--runs", str(run.parent)]
    Trainer(load_experiment(tiny_experiment, place)).run()
    assert result_of(run) == chosen


def test_limits_are_told_with_and_without_review():
    told = describe_limits(Thresholds(score=0.25), "2 photographs")
    assert told == "Defective from a score of 0.2500, chosen on 2 photographs."
    told = describe_limits(Thresholds(score=0.25, review=0.125), "2 photographs")
    assert told == "Defective from a score of 0.2500, for review from 0.1250, chosen on 2 photographs."


# === Folds ===


def test_folds_keep_groups_together_and_have_both_kinds_each():
    records = [
        record(f"{group}/{place}", int(group in "ab" and place == 0), group)
        for group in "abcdef"
        for place in (0, 1)
    ]
    first, second = divide(records, 2, seed=0)
    assert first | second == set("abcdef")
    assert len(first & {"a", "b"}) == len(second & {"a", "b"}) == 1


@pytest.mark.parametrize(
    ("folds", "said"), [(1, "Expected at least 2"), (3, "0 defective training photographs")]
)
def test_folds_that_cannot_be_scored_are_refused(folds, said):
    records = [record(str(place), int(place < 2), str(place)) for place in range(9)]
    with pytest.raises(ConfigError, match=said):
        divide(records, folds, seed=0)


@pytest.mark.slow
def test_folds_score_each_training_photograph_once_by_a_network_that_has_not_seen_it(run):
    splits = (run / "splits.txt").read_text().splitlines()
    trained = [line for line in splits if line.startswith("train")]
    (said, *_) = calibrate_run(run, ThresholdConfig(), folds=2)
    folds = [(run / "folds" / f"{number}_of_2.txt").read_text().splitlines() for number in (1, 2)]
    tested = [line.split(maxsplit=1)[1] for lines in folds for line in lines if line.startswith("test")]
    assert sorted(tested) == sorted(line.split(maxsplit=1)[1] for line in trained)
    assert "of training, which 2 other networks scored." in said
    assert result_of(run).chosen_by in said
    before = [(run / "folds" / f"{number}_of_2" / "result.json").stat().st_mtime_ns for number in (1, 2)]
    list(calibrate_run(run, ThresholdConfig(), folds=2))
    after = [(run / "folds" / f"{number}_of_2" / "result.json").stat().st_mtime_ns for number in (1, 2)]
    assert after == before  # networks that are there are not trained again


# === Other runs ===


def evaluated_on(path, run, split):
    """A run that has tested the photographs of a split of `run`."""
    shutil.copytree(run, path)
    evaluate_run(path, split)
    return path


def test_what_other_folds_have_tested_is_used(run, tmp_path):
    other = evaluated_on(tmp_path / "other", run, "train")
    (scores,) = score_by(RunFolder(run), [other])
    assert scores.good.tolist() == scores.photographs.good.tolist()
    (said, *_) = calibrate_run(run, ThresholdConfig(), by=[other])
    counts = f"{len(scores.good)} good and {len(scores.photographs.defective)} defective photographs"
    assert said.endswith(f"and {counts} of training, which 1 other network scored.")


def test_runs_that_do_not_fit_are_refused(run, tmp_path, monkeypatch):
    same, validated = (evaluated_on(tmp_path / split, run, split) for split in ("test", "val"))
    for other, said in [(same, "could not be tested any more"), (validated, "none of the photographs")]:
        with pytest.raises(RunError, match=said):
            list(score_by(RunFolder(run), [other]))
    foreign = replace(load_evaluation(same), classes=("good", "dent"))
    monkeypatch.setattr("training.calibrate.load_evaluation", lambda _: foreign)
    with pytest.raises(RunError, match=r"knows the classes good, dent, .* Expected runs of one experiment"):
        list(score_by(RunFolder(run), [same]))
