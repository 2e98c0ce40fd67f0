"""`make demo` installs what it uses, and its last lines say what came out. `.ci/run` runs it as a whole."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from datasets.sample import Record
from examples.demo import RUN, STEPS, conclude
from training.experiment_file import load_experiment

ROOT = Path(__file__).parents[1]


def test_it_takes_two_fifths_of_the_experiments_steps():
    stages = load_experiment(ROOT / "training" / "experiments" / "toy_compact.toml").stages.model_dump()
    whole = {name: stage["steps"] for name, stage in stages.items() if stage["steps"]}
    assert set(STEPS) == set(whole)
    assert sum(STEPS.values()) / sum(whole.values()) == pytest.approx(2 / 5, abs=0.02)


def test_its_last_lines_say_what_came_out_where_and_what_next(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    RUN.mkdir(parents=True)
    figures = {"average_precision": 0.9871, "false_positives": 1, "false_negatives": 2, "images": 80}
    (RUN / "metrics.json").write_text(json.dumps(figures))
    answer = {"decision": {"label": "defect", "score": 0.98765}}
    conclude(Record("defect/7", Path("data/toy/defect/7.png"), None, 1, "test"), answer, 61.2)
    result, files, after = capsys.readouterr().out.strip().splitlines()
    assert result.split(maxsplit=1) == [
        "Result",
        "after 61 s: test AP 0.987, 3 errors of 80; data/toy/defect/7.png is 'defect', score 0.988.",
    ]
    assert all(
        name in files for name in ("runs/demo/report.html", "runs/demo/overlay.png", "runs/demo/model")
    )
    assert "make serve" in after
    assert "## Your own photographs" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def planned(tmp_path):
    """What `make` would do with an environment in `tmp_path`."""
    if shutil.which("make") is None:
        pytest.skip("needs make")

    def plan(*words):
        command = ["make", "--dry-run", *words, f"VENV={tmp_path}"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    return plan


def test_it_installs_no_development_and_nothing_twice(planned, tmp_path):
    assert "--editable '.[tensorflow]' --group train --group serve" in planned("demo")
    assert "--group dev" not in planned("demo")
    assert "-m examples.demo_loop" in planned("demo-loop")
    (tmp_path / "pip-installed").touch()
    (tmp_path / "installed").touch()
    assert "-m examples.demo" in planned("demo")
    assert "-m pip" not in planned("demo")


def test_a_machine_with_gpus_gets_tensorflow_with_cuda_and_keeps_it(planned, tmp_path):
    assert "--editable '.[gpu,openvino,client,batch,watch]' --group dev" in planned("install", "GPU=1")
    assert "--editable '.[gpu]' --group train --group serve" in planned("demo", "GPU=1")
    (tmp_path / "pip-installed").touch()
    (tmp_path / "installed").touch()
    assert "--editable '.[gpu," in planned("install", "GPU=1")
    (tmp_path / "installed-cuda").touch()
    assert "-m pip" not in planned("install") + planned("demo")
