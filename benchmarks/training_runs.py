"""Trained and evaluated runs of experiments, for several splits, numbers of defects and seeds.

Finished runs are reused, so that an interrupted benchmark continues with the same command.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.defect_subsets import keep_defects
from benchmarks.harness import markdown_table
from datasets.splitting import write_splits
from segdec.errors import ConfigError, RunError
from segdec.runtime.files import write_text_atomic
from training.config import ExperimentConfig, differing_settings
from training.data.run_data import list_dataset
from training.experiment_file import load_experiment
from training.metrics.aggregation import Aggregate, MeanStd, aggregate_runs
from training.run.folder import RunFolder

MINUTES = "minutes.json"
"""Training time of a run; written after its evaluation."""
Splits = Sequence[Path | None]
"""Split files; None = the data set's own split."""
TableRow = tuple[Sequence[str], Sequence[tuple[MeanStd, int]], float]
"""First cells, figures with their decimals, and minutes."""


@dataclass(frozen=True)
class Cell:
    """A table row: an experiment with a number of defective training photographs; None = all."""

    experiment: Path
    defects: int | None

    @property
    def amount(self) -> str:
        """The number as text."""
        return "all" if self.defects is None else str(self.defects)

    def folder(self, runs: Path, split: Path | None, seed: int) -> Path:
        """Returns the folder of the run on a split with a seed."""
        return runs / f"{self.experiment.stem}_{split.stem if split else 'own'}_{self.amount}_seed{seed}"


def runs_parser(usage: str, description: str, runs: str) -> argparse.ArgumentParser:
    """Returns a parser for experiments on several splits and seeds; `runs` is the default folder."""
    usage = f"%(prog)s [options] {usage} [-- flags of the experiments]"
    parser = argparse.ArgumentParser(usage=usage, description=description)
    own = "default: the data set's own split"
    parser.add_argument("--splits", type=Path, nargs="+", default=[None], help=own)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")
    parser.add_argument("--runs", type=Path, default=Path(runs), help="default: %(default)s")
    return parser


def parse_arguments(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None
) -> tuple[argparse.Namespace, list[str]]:
    """Returns the options, and the experiment flags after `--`.

    Raises:
        ConfigError: If there is a single seed of a single split, which has no spread.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    if len(options.seeds) * len(options.splits) < 2:
        raise ConfigError("One seed of one split has no spread. Expected more --seeds or more --splits.")
    return options, words[end + 1 :]


def aggregate_cell(cell: Cell, splits: Splits, runs: Path, seeds: Sequence[int]) -> tuple[Aggregate, float]:
    """Returns the aggregate of a cell's runs, and the mean training time, minutes."""
    folders = [cell.folder(runs, split, seed) for seed in seeds for split in splits]
    return aggregate_runs(folders), mean(read_minutes(folder) for folder in folders)


def train_cell(
    cell: Cell,
    runs: Path,
    split: Path | None,
    seed: int,
    flags: Sequence[str],
    more: Callable[[Sequence[str]], Sequence[str]] = lambda _: (),
) -> None:
    """Trains and evaluates an experiment on a split with a seed, unless the run exists.

    `more` returns additional flags for those of the experiment.

    Raises:
        SegdecError: If there are too few defects, a command fails, or the existing run has other settings.
    """
    folder = cell.folder(runs, split, seed)
    words = [*flags, *([] if split is None else ["--data.splits", str(split)])]
    if (folder / MINUTES).exists():
        _check_settings(folder, load_experiment(cell.experiment, words))
        return
    if cell.defects is not None:
        own = _write_split(load_experiment(cell.experiment, words), folder, cell.defects, seed)
        words += ["--data.splits", str(own)]
    words += more(words)
    place = ["--name", folder.name, "--runs", str(folder.parent), "--seed", str(seed)]
    began = time.perf_counter()
    _run_training("run", str(cell.experiment), *place, "--fresh", *words)
    minutes = (time.perf_counter() - began) / 60
    _run_training("evaluate", str(folder))
    write_text_atomic(folder / MINUTES, json.dumps(minutes))


def read_minutes(folder: Path) -> float:
    """Returns the training time of a run."""
    return float(json.loads((folder / MINUTES).read_text(encoding="utf-8")))


def format_spread(spread: MeanStd, decimals: int) -> str:
    """Returns mean ± standard deviation, as far as they exist."""
    if spread.mean is None:
        return "–"
    return f"{spread.mean:.{decimals}f}" + ("" if spread.std is None else f" ± {spread.std:.{decimals}f}")


def describe(heading: Sequence[str], rows: Sequence[TableRow]) -> str:
    """Returns a Markdown table."""
    lines = []
    for cells, figures, minutes in rows:
        spreads = (format_spread(figure, decimals) for figure, decimals in figures)
        lines.append([*cells, *spreads, f"{minutes:.1f}"])
    return markdown_table([*heading, "minutes"], lines)


def _check_settings(folder: Path, config: ExperimentConfig) -> None:
    own = {"seed", "network.num_classes", *(f"stages.{name}.steps" for name, _ in config.stages)}
    for field, old, new in differing_settings(RunFolder.finished(folder).experiment(), config, own):
        raise RunError(
            f"'{folder}' has {field} = {old!r}, expected {new!r}. Choose another folder with --runs."
        )


def _write_split(config: ExperimentConfig, folder: Path, defects: int, seed: int) -> Path:
    dataset = list_dataset(config.data, config.data.splits)
    path = folder.parent / f"{folder.name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_splits(path, keep_defects(dataset.records, defects, seed))
    return path


def _run_training(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "training", *words], check=False)
    if done.returncode:
        raise RunError(f"`python -m training {' '.join(words)}` exited with {done.returncode}.")
