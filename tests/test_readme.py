"""Every command of the documentation exists and takes its flags; those in RUN work, one after the other.

`make test` checks names and flags; `make test-all` runs them, from photographs to an answer of the service.
"""

import argparse
import importlib
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import cv2
import httpx
import numpy as np
import pytest

from datasets.layouts.toy import write_toy
from tests import forked

ROOT = Path(__file__).parents[1]
SERVING = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
ELSEWHERE = runpy.run_path(str(ROOT / "docs" / "site_pages.py"))["PAGES"].values()
PAGES = [*(ROOT / name for name in ELSEWHERE), *sorted((ROOT / "docs").glob("*.md"))]
"""Those of the documentation site, the README first."""
WRAPPED_AT = 120
SHELLS, NO_SHELLS = {"bash", "sh"}, {"", "python", "json", "yaml", "ini", "toml"}

NESTED = {"plan"}
"""Commands that have commands of their own."""

PORT = "--port 8000"
URL = "http://127.0.0.1:8000"

RUN = (
    "python -m training fit data/parts --minutes 10",
    "python -m api --model models/parts --port 8000",
    'curl --data-binary @part.png -H "Content-Type: image/png" "http://127.0.0.1:8000/v1/predict?mask=none"',
    "python -m datasets inspect folder data/parts",
    "python -m datasets split folder data/parts splits.txt --seed 0",
    "python -m datasets pack folder data/parts data/packed",
    "python -m training run training/experiments/folder_mobilenet.toml --data.layout shards "
    "--data.root data/packed --name packed",
    "python -m training evaluate runs/packed",
    "python -m training join runs/by_hand runs/packed --out joined",
    "python -m training compare runs/by_hand runs/packed",
    "python -m training calibrate runs/parts --threshold.miss-cost 30",
    'curl -F file=@part.png "http://127.0.0.1:8000/v1/predict?threshold=0.3&mask=rle"',
    'curl --data-binary @part.png -H "Content-Type: image/png" -H "Accept: image/png" -o mask.png '
    "http://127.0.0.1:8000/v1/predict",
    'curl -F file=@part.png -F file=@part.png "http://127.0.0.1:8000/v1/predict/batch?mask=none"',
    "python -m segdec predict part.png --url http://127.0.0.1:8000 --out inspected_by_url",
    "python -m segdec predict data/parts/good data/parts/defect --model models/parts "
    "--results found_in_parts --shard 1/2",
    "python -m segdec keygen release.key",
    "python -m segdec sign models/parts --key release.key",
    "python -m segdec verify models/parts --key release.pub",
    "python -m api --model models/parts --require-signature release.pub --port 8000",
)
"""Documented commands in an order in which each finds what it needs."""

TINY = (
    "--stages.segment.steps 2 --stages.decision.steps 0 --stages.joint.steps 1 "
    "--input.height 32 --input.width 32 --network.feature-width 8"
)
COMPACT = "python -m training run training/experiments/folder_compact.toml"
PLACEHOLDERS = {
    "python -m training fit data/parts --minutes 10": (  # ten minutes; see tests/training/fit
        f"{COMPACT} --data.root data/parts --name parts {TINY}",
        "python -m training evaluate runs/parts",
        "python -m training export runs/parts models/parts --no-measure",
    ),
    RUN[6]: (f"{COMPACT} --data.layout shards --data.root data/packed --name packed {TINY}",),
    **{command: (command.replace("by_hand", "parts"),) for command in RUN if "by_hand" in command},
}
"""Steps that leave the same behind in less time."""


def blocks():
    """Language and text of each fenced block."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    return re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, flags=re.DOTALL | re.MULTILINE)


def commands():
    """The lines of the shell blocks, continued ones joined, comments dropped."""
    texts = [text for language, text in blocks() if language in SHELLS]
    lines = "".join(texts).replace("\\\n", " ").splitlines()
    stripped = (re.sub(r"\s+", " ", re.split(r"\s+#\s", line)[0]).strip() for line in lines)
    return [line for line in stripped if line and not line.startswith("#")]


def test_every_block_is_known_and_what_is_run_is_documented():
    """Commands in a block of another name would escape."""
    assert {language for language, _ in blocks()} <= SHELLS | NO_SHELLS
    assert set(RUN) <= set(commands())


def test_commands_named_in_the_text_exist():
    """Those in a line of text are not run; what they name is there."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    named = [words.split() for text in texts for words in re.findall(r"`((?:make|python) [^`]+)`", text)]
    assert len(named) > 20
    for words in named:
        if words[0] == "make":
            assert words[1] in targets, words
        elif words[1] == "-m":
            assert find_spec(words[2]), words
        else:
            assert (ROOT / words[1]).is_file(), words


def test_commands_take_their_flags(monkeypatch, capsys):
    """Those of the product, run or not; none is started: its help names the flags."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    known = {}
    for line in commands():
        words = shlex.split(line)
        flags = {word for word in words if word.startswith("--")}
        if not flags or words[:2] != ["python", "-m"] or not (ROOT / words[2] / "__main__.py").is_file():
            continue
        depth = 5 if words[3] in NESTED else 4
        command = (words[2], *(word for word in words[3:depth] if not word.startswith("-")))
        if command not in known:
            monkeypatch.setattr(sys, "argv", [*command, "--help"])
            with pytest.raises(SystemExit):
                importlib.import_module(f"{command[0]}.__main__").main()
            known[command] = set(re.findall(r"--[\w.-]+", capsys.readouterr().out))
        others = known["training", "run"] if command == ("training", "launch") else set()  # as its help says
        assert flags <= known[command] | others, command
    assert len(known) > 8


def test_lines_are_wrapped():
    """But for tables, commands, figures that a benchmark writes, and words that are longer than a line."""
    for page in [*PAGES, ROOT / "deploy" / "grafana" / "README.md"]:
        text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"<!-- figures.*<!-- end of figures -->", "", text, flags=re.DOTALL)
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("|")]
        long = [line for line in lines if len(line) > WRAPPED_AT]
        assert [line for line in long if max(map(len, line.split())) < WRAPPED_AT - 20] == [], page


@pytest.fixture
def checkout(tmp_path):
    """A folder that looks like the checkout, with a few small photographs as a user would lay them out."""
    for name in ("segdec", "datasets", "training", "api", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    write_toy(tmp_path / "data" / "parts", 24, size=32)
    shutil.copy(next((tmp_path / "data" / "parts" / "defect").iterdir()), tmp_path / "part.png")
    return tmp_path


def post(command, folder):
    """Does what a curl command says, on machines without curl too; returns the labels in the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-binary")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-F", dest="form", action="append", default=[])
    parser.add_argument("-o", dest="out")
    parser.add_argument("url")
    words = parser.parse_args(shlex.split(command)[1:])
    headers = dict(header.split(": ") for header in words.headers)
    if words.form:
        files = [part.partition("=@") for part in words.form]
        sent = {"files": [(field, (file, (folder / file).read_bytes())) for field, _, file in files]}
    else:
        sent = {"content": (folder / words.data_binary.removeprefix("@")).read_bytes()}
    response = httpx.post(words.url, headers=headers, **sent)
    assert response.status_code == 200, response.text
    if words.out:
        mask = cv2.imdecode(np.frombuffer(response.content, np.uint8), cv2.IMREAD_UNCHANGED)
        assert mask.shape[:2] == (32, 32)
        return [response.headers["X-Segdec-Label"]]
    answers = [item["answer"] for item in response.json().get("items", [])] or [response.json()]
    return [answer["decision"]["label"] for answer in answers]


def start_service(command, folder):
    """Starts the service on a port that is free; returns it and its URL."""
    words = [sys.executable, *shlex.split(command.replace(PORT, "--port 0"))[1:]]
    service = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    line = service.stdout.readline()
    assert line.startswith("Serving")
    return service, line.split()[-1]


def stop(service):
    if service is not None:
        service.terminate()
        assert service.wait(timeout=60) == 0
        service.stdout.close()


def python_example(word):
    """The one example of the page of the service in which `word` stands."""
    (found,) = [text for text in re.findall(r"```python\n(.*?)```", SERVING, flags=re.DOTALL) if word in text]
    return found


@pytest.mark.slow
def test_commands_work_in_their_order(checkout, monkeypatch):
    service, url = None, URL
    try:
        for command in RUN:
            if PORT in command:
                stop(service)
                service, url = start_service(command, checkout)
                continue
            if command.startswith("curl"):
                assert set(post(command.replace(URL, url), checkout)) <= {"good", "defect", "review"}
                continue
            for step in PLACEHOLDERS.get(command, (command,)):
                result = forked.run(*shlex.split(step.replace(URL, url))[2:], folder=checkout)
                assert result.returncode == 0, f"{step}\n{result.stdout}\n{result.stderr}"
        names = {}
        monkeypatch.chdir(checkout)
        exec(python_example("Client").replace(URL, url), names)
        assert names["answer"].decision.label in ("good", "defect", "review")
    finally:
        stop(service)
    assert (checkout / "runs" / "parts" / "report.html").is_file()
    assert (checkout / "models" / "parts" / "manifest.json").is_file()


def test_python_example_is_the_documented_interface(tiny_artifact, tmp_path, toy_root, monkeypatch):
    example = python_example("Predictor")
    shutil.copytree(tiny_artifact, tmp_path / "models" / "parts")
    shutil.copy(next((toy_root / "good").iterdir()), tmp_path / "part.png")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(example, names)
    assert names["prediction"].mask.shape == (32, 32)
