import json
import re
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from datasets.loading import load_dataset
from datasets.reading import read
from datasets.sample import DataSetItem, Sample
from segdec.artifact import TrainingPhotographs, read_file
from segdec.errors import RunError
from segdec.export.self_test import run_self_test
from segdec.predictor import Predictor

pytest.importorskip("tensorflow")

from training.__main__ import main
from training.evaluate import evaluate_run
from training.export import ExportOptions, choose_sample, export_run
from training.metrics.rating import Rating
from training.metrics.storage import load_evaluation
from training.run.folder import RunFolder


def validation(root):
    return load_dataset("folder", root, root / "splits.txt").of_split("val")


def test_predictions_of_the_exported_model_equal_the_evaluation(finished_run, toy_root, tmp_path):
    summary = str(evaluate_run(finished_run, "test"))
    assert "Unlike the training, of 100 usual parts: " in summary
    manifest = export_run(finished_run, tmp_path / "model", ExportOptions(name="part", version="3"))
    assert (manifest.name, manifest.version, manifest.metrics_split) == ("part", "3", "test")
    report = (finished_run / "report.html").read_bytes()
    assert read_file(tmp_path / "model", manifest, "report.html") == report
    assert "report.html" in manifest.files
    result, points = RunFolder.finished(finished_run).result(), manifest.operating_points
    assert points is not None and result.operating_points
    assert (points.points, points.measured_on) == (result.operating_points, result.chosen_by)
    assert points.curve is not None
    assert result.model.thresholds.score in points.curve.scores
    assert result.model.thresholds.lowest in points.curve.scores
    rating = json.loads((finished_run / "metrics.json").read_text())["rating"]
    assert manifest.rating is not None
    assert (manifest.rating.level, manifest.rating.reason) == (rating["level"], rating["reason"])
    assert list(manifest.rating.advice) == rating["advice"]
    assert manifest.warnings == result.warnings
    trained = manifest.training_photographs
    assert trained is not None and trained.limits is not None
    unmeasured = trained.model_copy(update={"limits": None, "refused": None, "warned": None})
    assert unmeasured == TrainingPhotographs.of([(32, 32)], [8])
    parts = len({item.group for item in RunFolder(finished_run).items("train")})
    assert trained.refused is not None and trained.warned is not None
    assert (trained.refused.parts, trained.warned.parts) == (parts, parts)
    assert f"95 % intervals from {parts} parts." in report.decode()
    assert manifest.thresholds == result.model.thresholds
    predictor = Predictor.load(tmp_path / "model")
    assert predictor.manifest is not None and predictor.manifest.training_photographs == trained
    items = load_dataset("folder", toy_root, toy_root / "splits.txt").of_split("test")
    predictions = predictor.predict([read(item).image for item in items], batch_size=1)
    for result, prediction in zip(load_evaluation(finished_run).results, predictions, strict=True):
        assert prediction.label == result.predicted_label
        assert prediction.score == pytest.approx(result.score, abs=1e-5)


def test_a_run_of_an_earlier_version_is_exported_with_limits(finished_run, tmp_path, monkeypatch):
    """Its network is in memory and is not loaded again."""
    folder = RunFolder.finished(finished_run)
    before, network = folder.result(), folder.network()
    monkeypatch.setattr(RunFolder, "network", lambda _: pytest.fail("was loaded"))
    assert before.training_photographs is not None
    stored = json.loads((finished_run / "result.json").read_text())
    stored["training_photographs"] |= {"limits": {"false_alarm_rate": 0.001}, "refused": None, "warned": None}
    (finished_run / "result.json").write_text(json.dumps(stored))
    assert folder.result().training_photographs.limits is None
    options = ExportOptions(with_sample=False, measure=False)
    manifest = export_run(finished_run, tmp_path / "model", options, network)
    assert manifest.training_photographs == before.training_photographs
    folder.save_thresholds(folder.experiment(), before)


@pytest.mark.parametrize(
    ("levels", "labels", "chosen"),
    [
        ((10, 160, 220), (0, 1, 1), 2),
        ((90, 220, 160), (0, 1, 1), 1),
        ((250, 150, 20), (0, 1, 1), 1),  # a false alarm is no sample, however high its score
        ((10, 20, 30), (0, 1, 1), 0),  # no defect is found
        ((10, 250, 20), (0, 0, 0), 0),  # there is none
    ],
)
def test_sample_is_the_clearest_defect_or_the_first_image(predictor, levels, labels, chosen):
    items = [DataSetItem(str(index), Path(), None, label, "") for index, label in enumerate(labels)]
    images = {str(index): np.full((8, 8, 1), level, np.uint8) for index, level in enumerate(levels)}

    def read_sample(item):
        return Sample(item.name, images[item.name], None, item.label)

    sample = choose_sample(predictor, items, read_sample)
    assert sample is images[str(chosen)]


@pytest.mark.slow
def test_missing_images_are_replaced_by_noise_in_the_self_test(finished_run, tmp_path, capsys):
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    config = run / "config.toml"
    lines = config.read_text().splitlines()
    moved = [f'root = "{tmp_path / "moved"}"' if line.startswith("root = ") else line for line in lines]
    assert moved != lines
    config.write_text("\n".join(moved))
    manifest = export_run(run, tmp_path / "model", ExportOptions(engines=("openvino",)))
    assert (manifest.self_test.height, manifest.self_test.width) == (256, 256)
    (notice,) = capsys.readouterr().err.splitlines()
    assert notice.startswith("note: The self-test of the artifact uses noise")
    assert "moved" in notice
    run_self_test(Predictor.load(tmp_path / "model"), tmp_path / "model")


def test_a_run_that_has_not_finished_cannot_be_used(tmp_path):
    (tmp_path / "config.toml").write_text("[stages.segment]\nsteps = 1\n")
    with pytest.raises(RunError, match=r"has not finished: it has no result.json.*training run"):
        evaluate_run(tmp_path, "test")
    with pytest.raises(RunError, match="not a run folder"):
        export_run(tmp_path / "nowhere", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_code_in_a_file_of_weights_is_not_run(finished_run, tmp_path):
    """A whole Keras model in their place, with a layer that is a program."""
    import keras

    def write_and_pass(x, path):
        Path(path).write_text("from a layer")
        return x

    mark, run = tmp_path / "mark", shutil.copytree(finished_run, tmp_path / "run")
    inputs = keras.Input((1,))
    layer = keras.layers.Lambda(write_and_pass, output_shape=(1,), arguments={"path": str(mark)})
    model = keras.Model(inputs, keras.layers.Dense(1)(layer(inputs)))
    with warnings.catch_warnings(action="ignore"):
        model.save(tmp_path / "model.h5")
    mark.unlink(missing_ok=True)
    (tmp_path / "model.h5").replace(run / "network.weights.h5")
    with warnings.catch_warnings(action="ignore"), pytest.raises(RunError, match="Cannot read the weights"):
        export_run(run, tmp_path / "model")
    assert not mark.exists()


def test_the_rating_is_printed_and_reported(finished_run, tmp_path, monkeypatch, capsys):
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    monkeypatch.setattr("training.evaluate.rate", lambda *_: Rating("useless", "It was tested."))
    main(["evaluate", str(run)])
    assert capsys.readouterr().out.endswith("\nrating      useless: It was tested.\n")
    assert "Useless.</strong> It was tested." in (run / "report.html").read_text()


@pytest.mark.parametrize(
    ("level", "last"), [("weak", "Serve it with: python -m api"), ("useless", "Do not serve it.")]
)
def test_a_serving_command_is_printed_unless_the_model_is_useless(monkeypatch, capsys, level, last):
    rating = Rating(level, "It was tested.")
    manifest = SimpleNamespace(name="tiny", version="1", variants={}, speed=None, rating=rating)
    monkeypatch.setattr("training.export.export_run", lambda *_: manifest)
    main(["export", "run", "model"])
    assert last in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.slow
def test_engines_are_exported_and_verified(finished_run, toy_root, tmp_path, capsys):
    engines = ["--engines", "openvino", "openvino-int8", "--force"]
    main(["export", str(finished_run), str(tmp_path / "model"), *engines])
    printed = capsys.readouterr().out
    assert "openvino: float32, AP " in printed
    assert "openvino-int8: int8, AP " in printed
    assert re.search(r"time of \d+ × \d+ px: openvino [\d.e+]+ ms, openvino-int8 [\d.e+]+ ms; ", printed)
    assert (
        "; 'openvino' runs the model unless --engine chooses another one" in printed
    )  # int8 never by itself
    variants = Predictor.load(tmp_path / "model").manifest.variants
    exact = variants["openvino"].verification
    assert (exact.decisions_changed, exact.photographs) == (0, len(validation(toy_root)))
    assert exact.mask_difference < 1e-4
    assert not (tmp_path / "model" / "tensorflow").exists()
    image = read(validation(toy_root)[0]).image
    by_both = [Predictor.load(tmp_path / "model", name).predict([image])[0].score for name in variants]
    assert by_both[0] == pytest.approx(by_both[1], abs=0.2)


def test_unknown_engine_and_artifact_of_another_run_are_rejected(
    finished_run, tiny_artifact, tmp_path, capsys
):
    for arguments, printed in (
        (["export", finished_run, tmp_path / "model", "--engines", "abacus"], "engine 'abacus' is unknown."),
        (["verify", finished_run, tiny_artifact], "was not exported from"),
    ):
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in arguments])
        assert caught.value.code == 2
        assert printed in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
