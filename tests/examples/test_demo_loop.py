"""`make demo-loop`; as a whole it is run quickly, which shows that it works, not that it gets better."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

from datasets.loading import load_dataset
from datasets.reading import read
from examples import demo_loop
from examples.synthetic_parts import KINDS, SIDE, make_parts, write_folder
from training.experiment_file import load_experiment

ROOT = Path(__file__).parents[2]
COUNTS = {"good": 20, "scratch": 4, "hole": 3}


def test_parts_have_their_kind(tmp_path):
    parts = make_parts(COUNTS, seed=1)
    assert Counter(part.kind for part in parts) == COUNTS and set(COUNTS) == set(KINDS)
    assert parts == make_parts(COUNTS, seed=1)
    for part in parts:
        mask = cv2.imdecode(np.frombuffer(part.mask, np.uint8), cv2.IMREAD_UNCHANGED)
        assert mask.shape == (SIDE, SIDE) and mask.any() == (part.label != "good")
        assert (part.review()["mask"] is None) == (part.kind == "good")
    write_folder(tmp_path, parts)
    dataset = load_dataset("folder", tmp_path)
    assert dataset.problems == () and Counter(r.label for r in dataset.records) == {0: 20, 1: 7}
    assert all(read(record).mask.any() for record in dataset.records if record.label)


def test_its_experiment_is_one():
    config = load_experiment(demo_loop.EXPERIMENT, list(demo_loop.QUICK))
    assert config.folder == demo_loop.FOLDER / "runs" / "parts" and config.stages.segment.steps == 60


def test_its_last_lines_say_what_the_loop_was_worth(capsys):
    demo_loop.conclude(Counter(demo_loop.UNSEEN), Counter(hole=30, good=1), Counter(hole=2, good=2), 61.2)
    printed = " ".join(capsys.readouterr().out.split())
    assert "after 61 s, errors on 200 new parts, version 1 → version 2" in printed
    assert "holes missed 30 of 40 → 2 false alarms 1 of 120 → 2" in printed


@pytest.mark.slow
def test_it_goes_from_inspections_to_the_next_version(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo_loop", "--quick"],
        cwd=tmp_path,
        env={name: value for name, value in environment.items() if not name.startswith("SEGDEC_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("Reviewed ", "Wrote ", "erdict ", "The candidate answered 8", "Result "):
        assert text in done.stdout, text
    labels = (tmp_path / demo_loop.MODELS / "parts" / "labels.json").read_text()
    assert '"stable": "2"' in labels and '"previous": "1"' in labels
