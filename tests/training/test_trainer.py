import json

import h5py
import numpy as np
import pytest

from segdec.errors import DatasetError, ImageError, RunError
from training.config import load_experiment

pytest.importorskip("tensorflow")

from training.meter import Meter
from training.run_folder import RunFolder
from training.run_log import read_log
from training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


def weights(run):
    """All arrays of the run's weights file."""
    arrays = {}
    with h5py.File(run / "network.weights.h5") as file:
        file.visititems(lambda name, item: arrays.update({name: item[()]} if hasattr(item, "shape") else {}))
    return arrays


def load(experiment, tmp_path, *flags):
    return load_experiment(experiment, ["--runs", str(tmp_path), *flags])


def test_run_folder_holds_what_a_run_leaves(finished_run, tiny_experiment):
    names = {path.name for path in finished_run.iterdir()}
    assert {
        "config.toml",
        "log.jsonl",
        "result.json",
        "network.weights.h5",
        "checkpoints",
        "tensorboard",
    } <= names
    assert load_experiment(finished_run / "config.toml") == load_experiment(tiny_experiment)
    assert list((finished_run / "tensorboard").glob("events.out.*"))


def test_every_stage_is_logged_and_validated(finished_run):
    records = read_log(finished_run)
    steps = [(record["stage"], record["step"]) for record in records if record["kind"] == "train"]
    assert steps == [
        (stage, step + 1)
        for stage, count in (("segment", 5), ("decision", 4), ("joint", 3))
        for step in range(count)
    ]
    validated = [(record["stage"], record["step"]) for record in records if record["kind"] == "val"]
    assert validated == [
        ("segment", 2),
        ("segment", 4),
        ("segment", 5),
        ("decision", 2),
        ("decision", 4),
        *JOINT,
    ]
    assert {"loss", "learning_rate", "images_per_s"} <= records[0].keys()


JOINT = [("joint", 2), ("joint", 3)]


def test_result_is_what_validation_chose(finished_run):
    result = RunFolder.finished(finished_run).result()
    assert result.model.classes == ("good", "defect")
    assert 0 < result.model.thresholds.mask < 1
    assert len(result.data_fingerprint) == 64
    best = max(
        r["average_precision"]
        for r in read_log(finished_run)
        if r["kind"] == "val" and r["stage"] != "segment"
    )
    assert result.validation["average_precision"] == best


class InterruptedRunError(Exception):
    """Stands for a process that is gone."""


@pytest.mark.parametrize("steps", [3, 7, 11])  # within each stage, after a checkpoint and between two
def test_a_resumed_run_ends_as_the_uninterrupted_one(
    tiny_experiment, finished_run, tmp_path, monkeypatch, steps
):
    config = load(tiny_experiment, tmp_path)
    taken = []
    advance = Meter.advance

    def stop(meter):
        taken.append(1)
        if len(taken) == steps:
            raise InterruptedRunError
        advance(meter)

    with monkeypatch.context() as patch:
        patch.setattr(Meter, "advance", stop)
        with pytest.raises(InterruptedRunError):
            Trainer(config).run()
    trainer = Trainer(config)
    assert trainer.resumed
    assert "Going on" in trainer.opening()
    run = trainer.run().path
    expected = weights(finished_run)
    for name, value in weights(run).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    assert (run / "result.json").read_text() == (finished_run / "result.json").read_text()
    logged = [{key: value for key, value in r.items() if key != "images_per_s"} for r in read_log(run)]
    assert logged == [
        {key: value for key, value in r.items() if key != "images_per_s"} for r in read_log(finished_run)
    ]


def test_a_finished_run_has_nothing_left_to_do(tiny_experiment, finished_run):
    before = weights(finished_run)
    trainer = Trainer(load_experiment(tiny_experiment))
    assert "all stages are done" in trainer.opening()
    trainer.run()
    for name, value in weights(finished_run).items():
        np.testing.assert_array_equal(value, before[name])


def test_a_changed_configuration_names_the_field(tiny_experiment, tmp_path):
    RunFolder.open(load(tiny_experiment, tmp_path), fresh=False)
    changed = load(tiny_experiment, tmp_path, "--stages.joint.learning-rate", "0.5")
    with pytest.raises(RunError, match=r"stages.joint.learning_rate = 0.001, now it is 0.5.*--fresh"):
        RunFolder.open(changed, fresh=False)
    harmless = load(tiny_experiment, tmp_path, "--log-every", "7", "--strategy", "single")
    assert RunFolder.open(harmless, fresh=False).path == tmp_path / "tiny"


def test_fresh_starts_over(tiny_experiment, tmp_path):
    config = load(tiny_experiment, tmp_path)
    folder = RunFolder.open(config, fresh=False)
    (folder.path / "log.jsonl").write_text("old")
    RunFolder.open(config, fresh=True)
    assert [path.name for path in folder.path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize("fresh", [True, False])
def test_a_folder_that_is_no_run_is_left_alone(tiny_experiment, tmp_path, fresh):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "thesis.txt").write_text("precious")
    with pytest.raises(RunError, match="not a run folder"):
        RunFolder.open(load(tiny_experiment, tmp_path), fresh=fresh)
    assert (tmp_path / "tiny" / "thesis.txt").read_text() == "precious"


def test_unreadable_photographs_stop_a_run_before_it_writes(tiny_experiment, toy_root, tmp_path):
    import shutil

    broken = tmp_path / "toy"
    shutil.copytree(toy_root, broken)
    photograph = next((broken / "good").iterdir())
    photograph.write_bytes(photograph.read_bytes()[:200])
    split = [line for line in (broken / "splits.txt").read_text().splitlines() if not line.startswith("#")]
    (broken / "splits.txt").write_text(
        "\n".join(
            f"train good/{photograph.stem}"
            if photograph.stem in line and " good/" in line.replace("\t", " ")
            else line
            for line in split
        )
    )
    config = load(
        tiny_experiment, tmp_path, "--data.root", str(broken), "--data.splits", str(broken / "splits.txt")
    )
    with pytest.raises(ImageError, match=photograph.name):
        Trainer(config)
    assert not (tmp_path / "tiny").exists()


def test_an_empty_split_is_an_error(tiny_experiment, toy_root, tmp_path):
    splits = tmp_path / "splits.txt"
    splits.write_text(
        "".join(
            line.replace("val", "test") + "\n"
            for line in (toy_root / "splits.txt").read_text().splitlines()
            if not line.startswith("#")
        )
    )
    with pytest.raises(DatasetError, match="split 'val' holds no image"):
        Trainer(load(tiny_experiment, tmp_path, "--data.splits", str(splits)))
    assert not (tmp_path / "tiny").exists()


def test_a_diverging_run_stops_and_says_where(tiny_experiment, tmp_path):
    flags = ["--stages.segment.optimizer", "sgd", "--stages.segment.learning-rate", "1e38"]
    with pytest.raises(
        RunError, match=r"loss of stage 'segment' became .* lower --stages.segment.learning-rate"
    ):
        Trainer(load(tiny_experiment, tmp_path, *flags)).run()


def test_a_log_cut_off_by_a_crash_is_readable(tmp_path):
    (tmp_path / "log.jsonl").write_text(json.dumps({"step": 1}) + "\n" + '{"step": 2, "lo')
    assert read_log(tmp_path) == [{"step": 1}]
    assert read_log(tmp_path / "nowhere") == []
