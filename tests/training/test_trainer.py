import json
import re
import shutil

import numpy as np
import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from segdec.errors import RunError
from segdec.images import read_image, write_png
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

from training.data.run_data import load_run_data
from training.evaluate import evaluate_run
from training.run.folder import RunFolder
from training.run.run_log import read_log
from training.trainer import Trainer


def load(experiment, tmp_path, *flags):
    return load_experiment(experiment, ["--runs", str(tmp_path), *flags])


def test_files_of_a_finished_run(finished_run, tiny_experiment):
    names = {path.name for path in finished_run.iterdir()}
    assert {"config.toml", "log.jsonl", "result.json", "network.weights.h5", "checkpoints"} <= names
    assert load_experiment(finished_run / "config.toml") == load_experiment(tiny_experiment)
    curves = finished_run / "tensorboard"
    assert {path.name for path in curves.iterdir()} == {"segment", "decision", "joint"}
    events = EventAccumulator(str(curves / "segment")).Reload()
    tags = [tag for tag in events.Tags()["tensors"] if "panel/" in tag]
    assert len(tags) == 5
    assert sum(tag.startswith("training_panel/") for tag in tags) == 1
    assert all([event.step for event in events.Tensors(tag)] == [3, 5] for tag in tags)
    for name in ("panel.png", "training_panel.png"):
        assert read_image(finished_run / name).pixels.shape[2] == 3


def test_every_stage_is_logged_and_validated(finished_run):
    records = read_log(finished_run)
    steps = [(record["stage"], record["step"]) for record in records if record["kind"] == "train"]
    assert steps == [
        (stage, step + 1)
        for stage, count in (("segment", 5), ("decision", 4), ("joint", 3))
        for step in range(count)
    ]
    validated = [(record["stage"], record["step"]) for record in records if record["kind"] == "val"]
    assert validated == [("segment", 3), ("segment", 5), ("decision", 3), ("decision", 4), ("joint", 3)]
    result = RunFolder.finished(finished_run).result()
    assert result.model.classes == ("good", "defect")
    assert 0 < result.model.thresholds.mask < 1
    assert len(result.data_fingerprint) == 64
    best = max(r["average_precision"] for r in records if r["kind"] == "val" and r["stage"] != "segment")
    assert result.validation["average_precision"] == best
    speed = {"images_per_s", "s_per_step", "input_wait", "model_flops_per_s", "flop_utilisation"}
    assert {"loss", "learning_rate", *speed} <= records[0].keys()


def test_finished_run_is_not_trained_again(tiny_experiment, finished_run, read_weights):
    before = read_weights(finished_run)
    trainer = Trainer(load_experiment(tiny_experiment))
    assert "all stages finished" in trainer.describe_start()
    trainer.run()
    np.testing.assert_equal(read_weights(finished_run), before)


@pytest.fixture(scope="module")
def data(tiny_experiment):
    return load_run_data(load_experiment(tiny_experiment))


def test_a_changed_configuration_names_the_field(tiny_experiment, data, tmp_path):
    RunFolder.open(load(tiny_experiment, tmp_path), data, fresh=False)
    changed = load(tiny_experiment, tmp_path, "--stages.joint.learning-rate", "0.5")
    with pytest.raises(RunError, match=r"stages.joint.learning_rate = 0.001, now it is 0.5.*--fresh"):
        RunFolder.open(changed, data, fresh=False)
    harmless = load(tiny_experiment, tmp_path, "--strategy", "single", "--devices", "cpu:1")
    assert RunFolder.open(harmless, data, fresh=False).path == tmp_path / "tiny"


def test_changed_images_are_noticed(tiny_experiment, data, toy_root, tmp_path):
    RunFolder.open(load(tiny_experiment, tmp_path), data, fresh=False)
    shutil.copytree(toy_root, tmp_path / "toy")
    mask = next((tmp_path / "toy" / "masks" / "defect").iterdir())
    write_png(mask, np.full((32, 32), 255, np.uint8))
    moved = load(tiny_experiment, tmp_path, "--data.root", str(tmp_path / "toy"))
    with pytest.raises(RunError, match=r"data of the run '.*tiny' have changed"):
        RunFolder.open(moved, load_run_data(moved), fresh=False)


def test_fresh_replaces_the_run(tiny_experiment, data, tmp_path):
    config = load(tiny_experiment, tmp_path)
    folder = RunFolder.open(config, data, fresh=False)
    folder.close()
    (folder.path / "log.jsonl").write_text("old")
    RunFolder.open(config, data, fresh=True)
    names = {path.name for path in folder.path.iterdir()}
    assert names == {"config.toml", "environment.json", "lock", "splits.txt"}
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_folder_that_is_not_a_run_is_not_changed(tiny_experiment, data, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "thesis.txt").write_text("precious")
    for fresh in (True, False):
        with pytest.raises(RunError, match="not a run folder"):
            RunFolder.open(load(tiny_experiment, tmp_path), data, fresh=fresh)
    assert (tmp_path / "tiny" / "thesis.txt").read_text() == "precious"


def test_diverging_run_stops_and_names_the_step(tiny_experiment, tmp_path):
    """The error names stage, step and images; the input images are written to the run folder."""
    flags = ["--stages.segment.optimizer", "sgd", "--stages.segment.learning-rate", "1e38"]
    trainer = Trainer(load(tiny_experiment, tmp_path, "--log-every", "5", *flags))
    with pytest.raises(
        RunError, match=r"of stage 'segment' became .* at step (\d).* lower --stages.segment.learning-rate"
    ) as stopped:
        trainer.run()
    step = int(re.search(r"at step (\d)", str(stopped.value))[1])
    assert step > 1  # the loss of the first step is finite
    names, batch = trainer.pipeline.global_batch(0, step)
    assert all(name in str(stopped.value) for name in names)
    folder = tmp_path / "tiny" / "diverged" / f"segment_{step:06d}"
    assert str(folder) in str(stopped.value)
    for row, name in enumerate(names):
        stem = f"{row:03d}_{name.replace('/', '_')}"
        image = read_image(folder / f"{stem}.png").pixels
        np.testing.assert_allclose(image, batch["image"][row], atol=0.5)
        assert (folder / f"{stem}_target.png").exists()
    assert not (tmp_path / "tiny" / "result.json").exists()


def test_resumed_run_records_its_new_environment(tiny_experiment, data, tmp_path, capsys):
    folder = RunFolder.open(load(tiny_experiment, tmp_path), data, fresh=False)
    folder.close()
    environment = folder.path / "environment.json"
    environment.write_text(json.dumps({**json.loads(environment.read_text()), "cpus": "1024"}))
    assert capsys.readouterr().err == ""
    folder = RunFolder.open(load(tiny_experiment, tmp_path, "--log-every", "7"), data, fresh=False)
    folder.close()
    assert folder.experiment().log_every == 7
    printed = capsys.readouterr().err
    assert "was started in another environment (cpus: 1024, now" in printed
    assert json.loads(environment.read_text())["cpus"] != "1024"


@pytest.mark.slow
def test_float16_run_resumes_and_serves_float32(tiny_experiment, tmp_path):
    """Its scale is saved with it; its result is the plain network's."""
    flags = ["--precision", "mixed_float16", "--synchronized-batch-norm", "--stages.joint.steps", "0"]
    config = load(tiny_experiment, tmp_path, "--devices", "cpu:2", *flags)
    trainer = Trainer(config)
    trainer.train_state.loss_scale.value.assign(64.0)
    folder = trainer.run()
    record = next(record for record in read_log(folder.path) if record["kind"] == "train")
    assert (record["loss_scale"], record["skipped_steps"]) == (64.0, 0)
    assert record["gradient_norm"] > 0
    again = Trainer(config)
    assert again.resumed
    assert again.train_state.loss_scale.value.numpy() == 64.0
    image = np.random.default_rng(0).uniform(0, 255, (1, 32, 32, 1)).astype(np.float32)
    served, loaded = trainer.validated(image), folder.network()(image)
    for name, value in loaded.items():
        assert value.dtype == "float32"
        np.testing.assert_allclose(served[name], value, atol=1e-6)


@pytest.mark.slow
def test_model_trained_on_good_images(tiny_experiment, toy_root, tmp_path):
    """Its weights are selected by synthetic defects on the validation images."""
    splits = tmp_path / "good.txt"
    lines = (toy_root / "splits.txt").read_text().splitlines()
    splits.write_text("\n".join(line for line in lines if "good/" in line or line.startswith("test")))
    flags = ["--data.splits", str(splits), "--augmentation.synthetic", "0.5"]
    flags += ["--stages.segment.steps", "0", "--stages.decision.steps", "0"]
    run = Trainer(load(tiny_experiment, tmp_path, *flags)).run().path
    validations = [record for record in read_log(run) if record["kind"] == "val"]
    assert all(0 < record["average_precision"] <= 1 for record in validations)
    assert all(0 <= record["pixel_f1"] <= 1 for record in validations)
    result = RunFolder.finished(run).result()
    assert result.model.classes == ("good", "defect")
    assert result.validation["average_precision"] is None  # the real ones are good
    assert "average_precision" in evaluate_run(run, "test").text
