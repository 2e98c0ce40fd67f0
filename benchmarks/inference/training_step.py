"""A training step of the compact network beside the same step with PyTorch.

    python -m benchmarks.inference.training_step [--rounds 20] [--precisions …] [--quick] [--json FILE]

The joint stage of training/experiments/kolektor_compact.toml at its size and batch: forward, both losses,
backward, Adam. Ours is the step that a run takes, with averaged weights and gradient norm. The batch lies in
memory. The share of the peak takes a step for three times the forward pass of the network computed directly.

All begin with the same weights and take the same steps: the table says how far the losses of the first step
and of the last are apart. Adam's first steps follow the sign of the gradient, which rounding decides where it
is near zero: two layouts of PyTorch come apart as far as PyTorch and TensorFlow.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import ROOT
from benchmarks.inference.arithmetic import TRAINING, network_flop
from benchmarks.inference.competitor import Competitor
from benchmarks.inference.competitors import EAGER, peer_module
from benchmarks.inference.interleaved_timing import Timing, time_interleaved
from benchmarks.inference.workload import photographs, write_workload
from benchmarks.reporting import Target, benchmark_parser, conclude, spread
from segdec.runtime.cli import clean_exit
from training.config import ExperimentConfig, ScheduleConfig
from training.experiment_file import load_experiment

EXPERIMENT = ROOT / "training" / "experiments" / "kolektor_compact.toml"
PEERS = {EAGER: "eager", "PyTorch channels_last": "channels_last"}
EXACT = "float32"
TIMES = 1.3


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="steps of each (default: %(default)s)")
    parser.add_argument(
        "--precisions",
        nargs="+",
        default=[EXACT],
        help="of our step, as in the experiment (default: float32)",
    )
    parser.add_argument("--quick", action="store_true", help="one round")
    options = parser.parse_args(arguments)
    with clean_exit(group="train"), tempfile.TemporaryDirectory() as name:
        experiment, folder = load_step_experiment(), Path(name)
        write_workload(folder, experiment.network)
        (folder / "experiment.json").write_text(experiment.model_dump_json(), encoding="utf-8")
        batch: dict[str, Any] = make_batch(experiment)
        np.savez(folder / "batch.npz", **batch)
        competitors = training_competitors(folder, options.precisions)
        timing = time_interleaved(competitors, 1 if options.quick else options.rounds)
    losses = {name: (each.ready["loss"], each.answers[-1]["loss"]) for name, each in competitors.items()}
    height, width = experiment.input.size
    flop = TRAINING * experiment.batch_size * network_flop(experiment.network, height, width)
    fastest = max(timing.ratio(our_name(precision), EAGER) for precision in options.precisions)
    return conclude(
        options.json,
        tabulate(timing, losses, flop),
        [Target(f"our fastest step, times as fast as {EAGER}", fastest, lowest=TIMES)],
        versions=dict(timing.versions),
        rounds=len(timing.seconds[EAGER]),
    )


def load_step_experiment() -> ExperimentConfig:
    """Loads the experiment with a constant learning rate."""
    experiment = load_experiment(EXPERIMENT)
    joint = experiment.stages.joint.model_copy(update={"schedule": ScheduleConfig()})
    stages = experiment.stages.model_copy(update={"joint": joint})
    return experiment.model_copy(update={"stages": stages})


def make_batch(experiment: ExperimentConfig) -> dict[str, np.ndarray]:
    """Makes good and defective photographs in turn: `image`, `target`, `weight` and `label`, as in a run."""
    stride, (height, width) = experiment.network.mask_stride, experiment.input.size
    labels = np.arange(experiment.batch_size) % 2
    target = np.zeros((len(labels), height // stride, width // stride, 1), np.float32)
    target[labels == 1, height // stride // 2, width // stride // 4 : width // stride // 2] = 0.5
    images = photographs(len(labels), height, width).astype(np.float32)
    return {"image": images, "target": target, "weight": np.ones_like(target), "label": labels}


def training_competitors(folder: Path, precisions: Sequence[str]) -> dict[str, Competitor]:
    """Returns our step in each precision, and the peers'."""
    ours = (sys.executable, "-m", "benchmarks.inference.our_training", str(folder))
    commands: dict[str, tuple[str, ...]] = {
        our_name(precision): (*ours, precision) for precision in precisions
    }
    for name, variant in PEERS.items():
        commands[name] = (*peer_module("torch_training"), str(folder), variant)
    return {name: Competitor(command) for name, command in commands.items()}


def our_name(precision: str) -> str:
    """Returns the name of our step in the table."""
    return f"segdec {precision}"


def tabulate(
    timing: Timing, losses: Mapping[str, tuple[float, float]], flop: float
) -> list[dict[str, object]]:
    """Returns a row for each competitor.

    Args:
        timing: Of the steps.
        losses: Of each competitor, at the first and the last step.
        flop: Of a step.
    """
    rows: list[dict[str, object]] = []
    for name, seconds in timing.seconds.items():
        row: dict[str, object] = {"competitor": name}
        row |= {f"s a step, {key}": value for key, value in spread(seconds).items()}
        row |= {f"times as fast as {EAGER}": timing.ratio(name, EAGER)}
        row |= {"% of peak": timing.peak_share(name, flop), "memory peak, MB": timing.peak_mb[name]}
        first, last = (abs(ours - eager) for ours, eager in zip(losses[name], losses[EAGER], strict=True))
        rows.append({**row, "first loss differs by": first, "last loss differs by": last})
    return rows


if __name__ == "__main__":
    sys.exit(main())
