"""From a folder to a model in one command; its clock ticks by being looked at."""

import shutil

import numpy as np
import pytest

from datasets.layouts.toy import write_toy
from segdec.artifact import read_manifest
from segdec.images import write_png
from training.__main__ import main
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

TICK_S = 60
"""Far more than anything takes, so that what the machine does is of no account."""

TINY = "40"
"""Minutes, as many ticks."""

NARROW = {
    "segmentation_widths": ((4,), (4,), (4,)),
    "feature_width": 8,
    "feature_kernel": 5,
    "decision_widths": (4, 4, 4),
}
"""Of the network that is chosen: what is tried here does not depend on how wide it is."""


@pytest.fixture
def fit(run_process, tmp_path):
    """Runs the command in a process of its own; answers as `subprocess.run`."""

    def run(root, *flags, **faults):
        places = ["--runs", tmp_path / "runs", "--out", tmp_path / "model", "--encoder-weights", "none"]
        return run_process("fit", root, *places, *flags, tick_s=TICK_S, compact=NARROW, **faults)

    return run


@pytest.mark.slow
def test_a_folder_becomes_a_model(fit, toy_root, tmp_path):
    answer = fit(toy_root, "--minutes", TINY, "--name", "toy")
    assert answer.returncode == 0, answer.stderr
    printed = answer.stdout
    for topic in (
        "folder",
        "found",
        "defects",
        "split",
        "regime",
        "network",
        "input",
        "stages",
        "time",
        "took",
    ):
        assert f"\n{topic} " in f"\n{printed}", topic
    commands = [line.split("#")[0].strip() for line in printed.split("Next:\n")[1].splitlines()]
    run, model = tmp_path / "runs" / "toy", tmp_path / "model"
    assert commands == [
        f"python -m api --model {model} --port 8000",
        f"python -m training calibrate {run} --threshold.defect-rate 0.01",
        f"python -m training run {run}.toml --name toy_2",
    ]
    experiment = load_experiment(tmp_path / "runs" / "toy.toml")
    assert load_experiment(run / "config.toml") == experiment
    assert (run / "report.html").is_file()
    assert read_manifest(tmp_path / "model").classes == ("good", "defect")
    again = fit(toy_root, "--minutes", TINY, "--name", "toy")
    assert again.returncode == 2
    assert "exists. Give --overwrite to replace it" in again.stderr


@pytest.mark.slow
def test_what_training_refuses_leaves_no_experiment_in_the_way(fit, toy_root, tmp_path):
    root = tmp_path / "parts"
    shutil.copytree(toy_root, root)
    splits = (root / "splits.txt").read_text()
    trained = next(line.split()[1] for line in splits.splitlines() if line.startswith("train  good/"))
    shutil.copy(root / f"{trained}.png", root / "good" / "twin.png")
    (root / "splits.txt").write_text(f"{splits}val  good/twin\n")
    answer = fit(root, "--minutes", TINY)
    assert answer.returncode == 2, answer.stderr
    assert "1 picture is in different splits" in answer.stderr
    assert not list((tmp_path / "runs").glob("parts*"))


@pytest.mark.slow
def test_interrupted_it_gives_the_best_model_so_far(fit, toy_root, tmp_path):
    faults = {
        "interrupt_at": "training.trainer:Trainer._validate",
        "count": 3,
    }  # the third is not measured alone
    answer = fit(toy_root, "--minutes", TINY, **faults)
    assert answer.returncode == 130, answer.stderr
    assert "Stopped: the best model so far is evaluated and exported." in answer.stderr
    assert read_manifest(tmp_path / "model").classes == ("good", "defect")
    assert load_experiment(tmp_path / "runs" / "toy" / "config.toml").stages.joint.steps == 0
    assert load_experiment(tmp_path / "runs" / "toy.toml").stages.joint.steps > 0  # to be run to its end


@pytest.mark.slow
@pytest.mark.usefixtures("tensorflow_devices")
def test_interrupted_after_training_it_says_what_makes_the_model(fit, toy_root, tmp_path):
    faults = {"interrupt_at": "training.fit.command:evaluate_run", "count": 1}
    answer = fit(toy_root, "--minutes", TINY, **faults)
    assert answer.returncode == 130, answer.stderr
    run, model = tmp_path / "runs" / "toy", tmp_path / "model"
    assert f"python -m training export {run} {model}" in answer.stderr
    assert not model.exists()
    main(["export", str(run), str(model), "--no-measure"])
    assert read_manifest(model).classes == ("good", "defect")


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2], ids=["at first", "in the last step"])
def test_interrupted_while_it_measures_there_is_no_model(fit, toy_root, tmp_path, count):
    faults = {"interrupt_at": "training.trainer:Trainer._validate", "count": count}
    answer = fit(toy_root, "--minutes", TINY, **faults)
    assert answer.returncode == 130, answer.stderr
    assert answer.stderr.splitlines()[-1].startswith("There is no model: nothing was trained yet.")
    assert not (tmp_path / "model").exists()


@pytest.mark.usefixtures("tensorflow_devices")
def test_interrupted_before_it_has_learnt_anything_there_is_no_model(monkeypatch, capsys, toy_root, tmp_path):
    from training.fit import command

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "measure_times", interrupted)
    places = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "model")]
    with pytest.raises(SystemExit) as left:
        main(["fit", str(toy_root), *places, "--encoder-weights", "none"])
    assert left.value.code == 130
    assert capsys.readouterr().err == f"{command.NO_MODEL}\n"
    assert not (tmp_path / "model").exists()


@pytest.mark.usefixtures("tensorflow_devices")
def test_classes_of_which_none_trains_become_one(profiled_of):
    from training.fit.command import _split

    groups = [[(0, "train")]] * 4 + [[(0, "val")]] * 3 + [[(1, "test")], [(2, "test")]] * 3
    profiled, division = _split(profiled_of(groups, own_split=True, classes=("good", "dent", "scratch")))
    assert profiled.profile.merged
    assert division.defective == (0, 0, 6)
    assert division.reasons[-1].startswith("no defect in train")
    groups += [[(1, "train")], [(2, "train")], [(1, "val")]]
    profiled, _ = _split(profiled_of(groups, own_split=True, classes=("good", "dent", "scratch")))
    assert not profiled.profile.merged


# === Bad input ===


def check_refused(capsys, tmp_path, root, *flags, word):
    with pytest.raises(SystemExit) as left:
        main(["fit", str(root), "--runs", str(tmp_path / "runs"), "--encoder-weights", "none", *flags])
    assert left.value.code == 2
    assert word in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("tensorflow_devices")
class TestBadInput:
    """Each an error of one line, before anything is written."""

    @pytest.mark.parametrize("minutes", ["0", "-1", "nan"])
    def test_no_time(self, capsys, tmp_path, toy_root, minutes):
        check_refused(
            capsys, tmp_path, toy_root, "--minutes", minutes, word="Expected a time limit in minutes"
        )

    def test_an_empty_folder(self, capsys, tmp_path):
        (tmp_path / "parts").mkdir()
        check_refused(capsys, tmp_path, tmp_path / "parts", word="holds no photograph")

    def test_no_data_set(self, capsys, tmp_path):
        write_png(tmp_path / "one.png", np.zeros((8, 8, 1), np.uint8))
        check_refused(capsys, tmp_path, tmp_path, word="nothing that says which are good")

    def test_defects_alone(self, capsys, tmp_path, toy_root):
        root = tmp_path / "parts"
        shutil.copytree(toy_root, root)
        shutil.rmtree(root / "good")
        (root / "good").mkdir()
        (root / "splits.txt").unlink()
        check_refused(capsys, tmp_path, root, word=f"The folder {root / 'good'} holds no photograph")

    def test_twins_that_contradict_each_other(self, capsys, tmp_path):
        root = tmp_path / "parts"
        write_toy(root, 24, size=32)
        (root / "splits.txt").unlink()
        shutil.copy(sorted((root / "defect").iterdir())[0], root / "good" / "twin.png")
        check_refused(capsys, tmp_path, root, word="is the same picture as")

    def test_a_file_that_is_no_encoder(self, capsys, tmp_path, toy_root):
        check_refused(capsys, tmp_path, toy_root, "--encoder-weights", "no.h5", word="'no.h5' does not exist")

    def test_a_place_that_is_no_model(self, capsys, tmp_path, toy_root):
        out = tmp_path / "important"
        out.mkdir()
        flags = ["--out", str(out), "--overwrite"]
        for words in (flags, flags[:2]):  # --overwrite is no way out
            check_refused(capsys, tmp_path, toy_root, *words, word="exists and is not an artifact")
        flags = ["--out", str(toy_root / "splits.txt" / "model")]
        check_refused(capsys, tmp_path, toy_root, *flags, word="cannot be written")

    def test_a_white_level_that_is_none(self, capsys, tmp_path, toy_root):
        check_refused(capsys, tmp_path, toy_root, "--white-level", "12", word="from 256 to 65535")

    def test_a_name_that_is_none(self, capsys, tmp_path, toy_root):
        check_refused(capsys, tmp_path, toy_root, "--name", "a/b", word="'a/b' cannot name a run")
