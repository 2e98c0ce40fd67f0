"""The dry run tries everything, leaves nothing, and adds up."""

import shutil

import pytest

from training.__main__ import main

pytest.importorskip("tensorflow")

from training.data.feature_cache import FeatureCache
from training.data.run_data import DRY_RUN_PHOTOGRAPHS
from training.dry_run import RunEstimate, StageEstimate


@pytest.mark.slow
def test_it_says_what_a_run_will_take_and_leaves_nothing(tiny_experiment, tmp_path, capsys):
    main(["check", str(tiny_experiment), "--runs", str(tmp_path / "runs"), "--stages.joint.steps", "0"])
    printed = capsys.readouterr()
    assert "AP" not in printed.err
    assert "score" not in printed.err  # two steps separate nothing, which says nothing about the data
    lines = printed.out.splitlines()
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["segment", "5"],
        ["decision", "4"],
        ["validation", "4"],  # at steps 3 and 5, and 3 and 4
        ["checkpoint", "5"],
    ]
    assert "memory" in lines[5]
    assert lines[6].startswith("In all about ")
    left = {path.name for path in tmp_path.rglob("*")}
    assert left <= {"runs", ".checked", *(path.name for path in tmp_path.glob("runs/.checked/*.checked"))}


@pytest.mark.slow
def test_what_fails_in_a_run_fails_here_and_what_is_ignored_is_listed(
    tiny_experiment, toy_root, tmp_path, capsys
):
    root = tmp_path / "toy"
    shutil.copytree(toy_root, root)
    broken = next((root / "good").iterdir())
    broken.write_bytes(b"")
    flags = ["--data.root", str(root), "--data.skip-broken", "--runs", str(tmp_path / "runs")]
    flags += ["--stages.segment.optimizer", "sgd", "--stages.segment.learning-rate", "1e38"]
    with pytest.raises(SystemExit) as left:
        main(["check", str(tiny_experiment), *flags])
    assert left.value.code == 2
    errors = capsys.readouterr().err
    assert f"{broken} is empty" in errors  # the folder that holds the list is gone by now
    assert "of stage 'segment' became" in errors


@pytest.mark.slow
@pytest.mark.parametrize("heads", [0, 2])
def test_with_a_memory_a_few_photographs_are_encoded_and_all_are_counted(
    tiny_experiment, tiny_encoder, tiny_encoder_weights, toy_root, tmp_path, monkeypatch, capsys, heads
):
    encoded = []
    compute = FeatureCache.compute
    monkeypatch.setattr(
        FeatureCache, "compute", lambda self, arrays: encoded.append(1) or compute(self, arrays)
    )
    splits = tmp_path / "splits.txt"
    names = [line.split()[1] for line in (toy_root / "splits.txt").read_text().splitlines() if line[0] != "#"]
    used = [name for name in names if heads or name.startswith("good/")]
    splits.write_text("".join(f"train {name}\n" for name in used))
    flags = ["--network.encoder", tiny_encoder, "--encoder-weights", str(tiny_encoder_weights)]
    flags += ["--network.heads", str(heads), "--network.memory", "30", "--data.splits", str(splits)]
    flags += [f"--augmentation.{name}=0" for name in ("brightness", "contrast", "shift", "noise")]
    flags += [f"--stages.{stage}.steps=0" for stage in ("segment", "decision", *([] if heads else ["joint"]))]
    main(["check", str(tiny_experiment), "--runs", str(tmp_path / "runs"), *flags])
    features = next(line.split() for line in capsys.readouterr().out.splitlines() if "features" in line)
    assert features[1] == str(len(used))
    most = 2 + DRY_RUN_PHOTOGRAPHS * 3 * (2 if heads else 1)  # 2: to time it
    assert len(encoded) <= most, len(encoded)


def test_the_total_is_the_sum_of_its_parts():
    stages = (
        StageEstimate("segment", 100, 0.5, 8.0, flop_utilisation=0.25, validations=4, checkpoints=2),
        StageEstimate("joint", 10, 1.0, 4.0, flop_utilisation=0.125, validations=1, checkpoints=1),
    )
    estimate = RunEstimate(stages, 2.0, 0.1, 1_000_000, 2_000_000, {"GPU:0": 3_000_000})
    assert estimate.total_s == pytest.approx(50 + 10 + 5 * 2.0 + 3 * 0.1)
    text = str(estimate)
    assert "In all about 1 min 10 s." in text
    assert text.splitlines()[1].split() == ["segment", "100", "0.500", "8.0", "25.0%", "50.0", "s"]
    assert "memory 2.0 MB, GPU:0 3.0 MB, checkpoint 1.0 MB" in text
