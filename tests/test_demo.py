"""`make demo` installs only what it uses, and its last lines report the result. `.ci/run` runs all of it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from datasets.sample import DataSetItem
from examples.demo import RUN, conclude

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("level", "serve"),
    [("usable", "make serve, then open http"), ("useless", "no: the model is rated useless")],
)
def test_its_last_lines_have_the_quality_and_what_to_open(tmp_path, monkeypatch, capsys, level, serve):
    monkeypatch.chdir(tmp_path)
    RUN.mkdir(parents=True)
    figures = {"average_precision": 0.9871, "false_positives": 1, "false_negatives": 2, "images": 80}
    figures["rating"] = {"level": level}
    (RUN / "metrics.json").write_text(json.dumps(figures))
    answer = {"decision": {"label": "defect", "score": 0.98765}}
    conclude(DataSetItem("defect/7", Path("data/toy/defect/7.png"), None, 1, "test"), answer, 61.2)
    printed = " ".join(capsys.readouterr().out.split())
    wrong = "3 of 80 test photographs wrong: 2 defects missed, 1 false alarm"
    assert printed.startswith(f"Result AP 0.987; {wrong}; after 61 s")
    for text in ("7.png is 'defect', score 0.988", "runs/demo/report.html", "overlay.png", f"Serve {serve}"):
        assert text in printed


@pytest.fixture
def planned(tmp_path):
    """The commands of `make` for an environment in `tmp_path`."""
    if shutil.which("make") is None:
        pytest.skip("needs make")

    def plan(*words):
        command = ["make", "--dry-run", *words, f"VENV={tmp_path}"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    return plan


def test_it_installs_what_it_uses_once_and_keeps_cuda_on_a_machine_with_gpus(planned, tmp_path):
    groups = "--group train --group serve --group record"
    demo = planned("demo")
    assert f"--editable '.[tensorflow,encoder,client,watch]' {groups}" in demo and "--group dev" not in demo
    assert f"--editable '.[gpu,encoder,client,watch]' {groups}" in planned("demo", "GPU=1")
    installed = planned("install", "GPU=1")
    assert "--editable '.[gpu,openvino,encoder,client,batch,watch]' --group dev" in installed
    assert "-m examples.demo_loop" in planned("demo-loop")
    for name in ("pip-installed", "installed"):
        (tmp_path / name).touch()
    assert "-m examples.demo" in planned("demo") and "-m pip" not in planned("demo")
    assert "--editable '.[gpu," in planned("install", "GPU=1")
    (tmp_path / "installed-cuda").touch()
    assert "-m pip" not in planned("install") + planned("demo")
