"""What asynchronous training costs in accuracy: one parameter server and two workers against one process.

    python -m datasets toy data/toy
    python -m benchmarks.asynchronous_training

Both train `training/experiments/toy_compact.toml` and are measured on the test images. Each worker takes as
many steps as the one process: two workers that update the weights at the same time, from the same weights,
come about as far as one that updates them once. Flags after `--` go to both: `-- --stages.segment.steps 300`.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from segdec.errors import RunError
from segdec.runtime.cli import clean_exit
from training.experiment_file import load_experiment

EXPERIMENT = Path(__file__).resolve().parents[1] / "training" / "experiments" / "toy_compact.toml"
WORKERS = 2
WAYS = {
    "synchronous": (1, ("run",)),
    "asynchronous": (WORKERS, ("launch", "--workers", str(WORKERS), "--ps", "1")),
}
"""By name: how many processes take steps, and the command."""


@dataclass(frozen=True)
class TrainingResult:
    """How one way of training went.

    Attributes:
        average_precision: Of the image score on the test images.
        duration_s: Of the training, start-up included, s.
    """

    average_precision: float
    duration_s: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains both ways and prints both figures."""
    parser = argparse.ArgumentParser(description="What asynchronous training costs in accuracy.")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="folder of the runs (default: %(default)s)"
    )
    parser.add_argument("flags", nargs="*", help="fields of the experiment, after --")
    options = parser.parse_args(arguments)
    with clean_exit():
        results = {name: train(name, options.runs, options.flags) for name in WAYS}
        for name, result in results.items():
            print(f"{name:<14}test AP {result.average_precision:.4f}, {result.duration_s:.0f} s")
        precisions = [result.average_precision for result in results.values()]
        print(f"difference {100 * (precisions[0] - precisions[1]):.2f} points")


def train(name: str, runs: Path, flags: Sequence[str]) -> TrainingResult:
    """Trains and evaluates the run `name`.

    Raises:
        RunError: If a command fails; it has said why.
    """
    processes, command = WAYS[name]
    stages = load_experiment(EXPERIMENT, list(flags)).stages.model_dump()
    steps = {stage: settings["steps"] * processes for stage, settings in stages.items()}
    lengths = [word for stage, count in steps.items() for word in (f"--stages.{stage}.steps", str(count))]
    began = time.perf_counter()
    words = [str(EXPERIMENT), "--name", name, "--runs", str(runs), "--fresh", *flags, *lengths]
    _command(*command, *words)
    duration_s = time.perf_counter() - began
    _command("evaluate", str(runs / name))
    figures = json.loads((runs / name / "metrics.json").read_text(encoding="utf-8"))
    return TrainingResult(figures["average_precision"], duration_s)


def _command(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "training", *words], check=False)
    if done.returncode:
        raise RunError(f"`python -m training {' '.join(words)}` left with {done.returncode}.")


if __name__ == "__main__":
    main()
