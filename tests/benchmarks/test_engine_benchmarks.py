"""The benchmarks of the training engine run; their figures are for people to read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"\d+\.\d+"


def run(script, *words, codes=(0,)):
    command = [sys.executable, "-m", f"benchmarks.{script}", *words]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode in codes, done.stderr
    return done.stdout


@pytest.mark.slow
def test_engine_overhead():
    small = ["--rounds", "1", "--steps", "20", "--count", "24", "--size", "32", "--resize", "16", "24"]
    printed = run("engine_overhead", *small, "--mask-stride", "4", "--xla", codes=(0, 1))  # 1: too slow
    pattern = (
        rf"bare {NUMBER} images/s .*, engine {NUMBER} images/s, ratio {NUMBER} .*, input wait {NUMBER}%, "
        rf"step with input {NUMBER} × that in memory, in memory with XLA {NUMBER} images/s"
    )
    assert re.search(pattern, printed), printed


@pytest.mark.slow
def test_training_input():
    small = ["--rounds", "1", "--steps", "2", "--side", "64", "--count", "24", "--files", "40"]
    printed = run("training_input", *small, "--records", "100")
    cost = rf"{NUMBER} s, {NUMBER} s of CPU"
    assert len(re.findall(rf"2 batches of 8, \d+ threads, op determinism (?:on|off): {cost}", printed)) == 4
    for words in ("start on 40 files", "the next start", "start on shards of 100 records", "the next time"):
        assert re.search(rf"{words}: {cost}, \d+ MB", printed), printed


@pytest.mark.slow
def test_step_graph():
    printed = run("step_graph", "--replicas", "1", "2").splitlines()
    for line, replicas in zip(printed, (1, 2), strict=True):
        pattern = rf"{replicas} replica\(s\): traced in {NUMBER} s, first step {NUMBER} s, \d+ operations .*"
        assert re.fullmatch(rf"{pattern}, \d+ kernels", line), printed


@pytest.mark.slow
def test_asynchronous_training(toy_root, tmp_path):
    steps = [word for stage in ("segment", "decision", "joint") for word in (f"--stages.{stage}.steps", "2")]
    small = ["--data.root", str(toy_root), "--network.feature-width", "8", *steps]
    printed = run("asynchronous_training", "--runs", str(tmp_path), "--", *small)
    assert re.search(rf"synchronous\s+test AP {NUMBER}", printed), printed
    assert re.search(rf"asynchronous\s+test AP {NUMBER}", printed), printed
    assert re.search(rf"difference -?{NUMBER} points", printed), printed
