"""Invalid input stops a run before it starts: one error line, exit code 2, and no files."""

import json
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest

from datasets.loading import load_dataset
from segdec.images import write_png
from training.__main__ import main


def run(experiment, root, folder, *flags):
    splits = ["--data.root", str(root), "--data.splits", str(root / "splits.txt")]
    with pytest.raises(SystemExit) as left:
        main(["run", str(experiment), "--runs", str(folder / "runs"), *splits, *flags])
    assert left.value.code == 2


def check_refused(capsys, folder, *words):
    """One `error:` line that holds `words`, and no trace of a run."""
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert "Traceback" not in printed
    assert all(word in printed for word in words)
    assert not (folder / "runs").exists()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda item: item.image_file.write_bytes(b""), "is empty (0 bytes)"),
        (lambda item: item.image_file.write_text("a text"), "is not an image"),
        (lambda item: cut(item.image_file), "truncated"),
        (lambda item: write_png(item.image_file, np.full((32, 32, 3), (9, 99, 199), np.uint8)), "colour"),
        (lambda item: write_png(item.mask_file, np.full((16, 32), 255, np.uint8)), "32"),
        (lambda item: item.mask_file.unlink(), "has no mask"),
        (lambda item: write_png(item.mask_file, np.zeros((32, 32), np.uint8)), "mask"),
    ],
    ids=["empty", "text", "truncated", "colour", "mask-size", "no-mask", "black-mask"],
)
def test_damaged_files(tiny_experiment, toy_root, tmp_path, capsys, damage, word):
    root = tmp_path / "photographs"
    shutil.copytree(toy_root, root)
    items = load_dataset("folder", root, root / "splits.txt").of_split("val")
    item = next(item for item in items if item.label)
    damage(item)
    run(tiny_experiment, root, tmp_path)
    check_refused(capsys, tmp_path, word, item.image_file.stem)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--stages.segmnt.steps", "3"], ["--stages.segmnt.steps", "--stages.segment.steps"]),
        (["--batch-size"], ["batch-size"]),
        (["--network.num-classes", "3"], ["2 classes", "num_classes to 2"]),
        (["--data.layout", "foldr"], ["folder"]),
        (["--devices", "cpu:2", "--strategy", "single"], ["strategy=single", "cpu:2"]),
        (["--strategy", "multi-worker"], ["strategy=multi-worker", "TF_CONFIG", "launch --workers 2"]),
        (["--strategy", "parameter-server"], ["strategy=parameter-server", "--ps 1"]),
    ],
)
def test_bad_settings(tiny_experiment, toy_root, tmp_path, capsys, flags, words):
    run(tiny_experiment, toy_root, tmp_path, *flags)
    check_refused(capsys, tmp_path, *words)


WORKERS = {"worker": 2}
SERVED = {"chief": 1, "worker": 1, "ps": 1}


@pytest.mark.parametrize(
    ("sizes", "flags", "words"),
    [
        (WORKERS, ["--strategy", "mirrored"], ["strategy=mirrored does not fit TF_CONFIG", "multi-worker"]),
        (
            SERVED,
            ["--strategy", "multi-worker"],
            ["Expected strategy=parameter-server or auto", "remove 'ps'", "strategy=central-storage"],
        ),
        (WORKERS, [], ["cannot listen on port"]),
    ],
)
def test_a_cluster_that_does_not_fit(
    tiny_experiment, toy_root, tmp_path, capsys, monkeypatch, free_ports, sizes, flags, words
):
    """Rejected without waiting for the others."""
    ports = iter(free_ports(sum(sizes.values())))
    cluster = {job: [f"127.0.0.1:{next(ports)}" for _ in range(size)] for job, size in sizes.items()}
    job = next(iter(sizes))
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}}))
    port = 0 if flags else int(cluster[job][0].rpartition(":")[2])
    with socket.create_server(("", port)):
        run(tiny_experiment, toy_root, tmp_path, *flags)
    check_refused(capsys, tmp_path, *words)


@pytest.mark.parametrize("words", [[], ["--seed", "3", "experiment.toml"]])
def test_the_experiment_comes_first(words, capsys):
    with pytest.raises(SystemExit) as left:
        main(["run", *words])
    assert left.value.code == 2
    assert "No experiment given. Usage: python -m training run EXPERIMENT.toml" in capsys.readouterr().err
