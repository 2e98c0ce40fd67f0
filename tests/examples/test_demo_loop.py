"""`make demo-loop`; as a whole it is run quickly, which shows that it works, not that it gets better."""

import io
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import cv2
import numpy as np
import pytest

from datasets.loading import load_dataset
from datasets.reading import read
from examples import demo_loop
from examples.synthetic_parts import KINDS, SIDE, make_parts, write_folder
from tests.conftest import RECORD_VARIABLES
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
    assert dataset.problems == () and Counter(r.label for r in dataset.items) == {0: 20, 1: 7}
    assert all(read(record).mask.any() for record in dataset.items if record.label)


def test_its_experiment_is_one():
    config = load_experiment(demo_loop.EXPERIMENT, list(demo_loop.QUICK))
    assert config.folder == demo_loop.FOLDER / "runs" / "parts" and config.stages.segment.steps == 60


def test_its_last_lines_say_what_the_loop_was_worth(capsys):
    demo_loop.conclude(Counter(demo_loop.UNSEEN), Counter(hole=30, good=1), Counter(hole=2, good=2), 61.2)
    printed = " ".join(capsys.readouterr().out.split())
    assert "after 61 s, errors on 200 new parts, version 1 → version 2" in printed
    assert "holes missed 30 of 40 → 2 false alarms 1 of 120 → 2" in printed


@dataclass(frozen=True)
class RejectingService(demo_loop.Service):
    """Gives no verdict on parts with a hole, and calls all others good."""

    holes: set[bytes]
    tasks: list[dict]
    code: str = "unlike_training"
    asked: list[tuple] = field(default_factory=list)

    def ask(self, _method, path, body=None, **_headers):
        self.asked.append((path, body))
        if isinstance(body, bytes) and body in self.holes:
            problem = {"code": self.code, "detail": "It is darker."}
            raise HTTPError(path, 422, "", Message(), io.BytesIO(json.dumps(problem).encode()))
        if path == "/v1/review/next":
            return {"tasks": [self.tasks.pop()] if self.tasks else []}
        if path == "/v1/review/candidates":
            answered = sum("day2" in path and body not in self.holes for path, body in self.asked)
            return {"candidates": [{"answered": answered, "skipped": {}, "differing": 0, "serving": "1"}]}
        return {"decision": {"label": "good"}}


def test_parts_without_a_verdict_are_counted_printed_and_reviewed(capsys):
    parts = make_parts(COUNTS, seed=1)
    number = next(index for index, part in enumerate(parts) if part.kind == "hole")
    record = {"record_id": 7, "part_id": f"day1-{number}", "revision": 0}
    holes = {part.image for part in parts if part.kind == "hole"}
    service = RejectingService("http://127.0.0.1", "key", holes, [{"record": record, "why": "not_inspected"}])
    assert demo_loop.count_errors(service, parts) == {"good": 0, "scratch": 4, "no verdict": 3}
    demo_loop.review(service, demo_loop.inspect(service, parts))
    assert service.asked[-2][1]["label"] == "defect"
    demo_loop.shadow(service, parts)
    demo_loop.conclude(Counter(COUNTS), Counter({"no verdict": 3}), Counter(), 1.0)
    printed = capsys.readouterr().out
    assert printed.count("3 photographs are unlike those of the training (HTTP 422): no verdict.") == 2
    assert "Reviewed 1 of 27: 1 not_inspected." in printed
    assert " ".join(printed.split()).count("no verdict 3 of 27 → 0") == 1
    with pytest.raises(SystemExit, match="It is darker"):
        demo_loop.count_errors(replace(service, code="truncated_image"), parts)


@pytest.mark.slow
def test_it_goes_from_inspections_to_the_next_version(tmp_path):
    own = {name: os.environ[name] for name in os.environ if not name.startswith("SEGDEC_")}
    own |= {name: os.environ[name] for name in RECORD_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo_loop", "--quick"],
        cwd=tmp_path,
        env={**own, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("Reviewed ", "Wrote ", "erdict ", "The candidate answered 8", "Result "):
        assert text in done.stdout, text
    aliases = (tmp_path / demo_loop.MODELS / "parts" / "aliases.json").read_text()
    assert '"stable": "2"' in aliases and '"previous": "1"' in aliases
