import csv
import json

import pytest

from datasets.layouts import load_dataset
from datasets.reading import read
from segdec.errors import RunError
from segdec.predictor import Predictor

pytest.importorskip("tensorflow")

from training.__main__ import main
from training.results import evaluate_run, export_run
from training.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


POLY = ["--stages.joint.schedule.kind", "poly"]  # a schedule without steps is never made


def rows(run):
    with (run / "predictions.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_evaluation_writes_report_metrics_and_predictions(finished_run, toy_root):
    summary = evaluate_run(finished_run, "test")
    records = load_dataset("folder", toy_root, toy_root / "splits.txt").of_split("test")
    assert [row["name"] for row in rows(finished_run)] == [record.name for record in records]
    metrics = json.loads((finished_run / "metrics.json").read_text())
    assert metrics["split"] == "test"
    assert metrics["images"] == len(records)
    assert f"{metrics['average_precision']:.4f}" in summary
    assert (finished_run / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_exported_model_answers_as_evaluated(finished_run, toy_root, tmp_path):
    evaluate_run(finished_run, "test")
    manifest = export_run(finished_run, tmp_path / "model", name="part", version="3", overwrite=False)
    assert (manifest.name, manifest.version, manifest.metrics_split) == ("part", "3", "test")
    assert manifest.thresholds == RunFolder.finished(finished_run).result().model.thresholds
    predictor = Predictor.load(tmp_path / "model")
    records = load_dataset("folder", toy_root, toy_root / "splits.txt").of_split("test")
    predictions = predictor.predict([read(record).image for record in records], batch_size=1)
    for row, prediction in zip(rows(finished_run), predictions, strict=True):
        assert prediction.label == row["predicted_label"]
        assert prediction.score == pytest.approx(float(row["score"]), abs=1e-5)


def test_a_run_that_has_not_finished_cannot_be_used(tmp_path):
    (tmp_path / "config.toml").write_text("[stages.segment]\nsteps = 1\n")
    with pytest.raises(RunError, match=r"has not finished: it has no result.json.*training run"):
        evaluate_run(tmp_path, "test")
    with pytest.raises(RunError, match="not a run folder"):
        export_run(tmp_path / "nowhere", tmp_path / "out", name=None, version="1", overwrite=False)
    assert not (tmp_path / "out").exists()


def test_damaged_weights_are_refused(finished_run, tmp_path):
    import shutil

    run = tmp_path / "run"
    shutil.copytree(finished_run, run)
    (run / "network.weights.h5").write_bytes(b"no weights")
    with pytest.raises(RunError, match="Cannot read the weights"):
        RunFolder.finished(run).network()


def test_command_line_from_run_to_artifact(tiny_experiment, tmp_path, capsys):
    run = tmp_path / "tiny"
    main(["run", str(tiny_experiment), "--runs", str(tmp_path), "--stages.joint.steps", "0", *POLY])
    main(["evaluate", str(run), "--split", "val"])
    main(["export", str(run), str(tmp_path / "model")])
    printed = capsys.readouterr().out
    assert "average_precision" in printed
    assert f"python -m api --model {tmp_path / 'model'}" in printed
    assert Predictor.load(tmp_path / "model").manifest.metrics_split == "val"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.toml"], "error: Cannot read the experiment 'nowhere.toml'"),
        (["evaluate", "nowhere"], "error: 'nowhere' is not a run folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_help_lists_every_field(capsys):
    with pytest.raises(SystemExit) as left:
        main(["run", "--help"])
    assert left.value.code == 0
    assert "--stages.segment.learning-rate" in capsys.readouterr().out
