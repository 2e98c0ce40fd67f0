"""A pretrained encoder against training from scratch, in the same time: all defects, and few of them.

    python -m datasets split kolektor data/kolektorsdd folds --folds 5
    python -m benchmarks.encoder_comparison training/experiments/kolektor_mobilenet.toml \
        training/experiments/kolektor_compact.toml --splits folds/*.txt -- --data.root data/kolektorsdd

Each is trained for each split, number of defective training photographs and seed, which draws those that
stay. The second experiment gets as many steps as take, by its estimate, the minutes that the command of the
first one took, its start included. Runs that have been made are kept, so that the same command goes on where
it was stopped. Flags after `--` go to both.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.ablation import MINUTES, split_arguments, train_once
from datasets.sample import Record
from datasets.splitting import write_splits
from segdec.errors import ConfigError, RunError
from segdec.runtime.cli import clean_exit
from training.config import ExperimentConfig, differing_settings
from training.data.run_data import list_dataset
from training.experiment_file import load_experiment
from training.metrics.aggregation import Aggregate, MeanStd, aggregate_runs
from training.run.folder import RunFolder

FIGURES = {
    "average_precision": ("AP", 3),
    "fp_at_full_recall": ("FP at FN = 0", 1),
    "pixel_f1": ("pixel F1", 3),
}
"""Heading of each figure, pooled over the splits, and its decimals."""


@dataclass(frozen=True)
class Cell:
    """One line of the table: an experiment with so many defective training photographs; None is all."""

    experiment: Path
    defects: int | None

    @property
    def amount(self) -> str:
        """The number in words, as a command or a table has it."""
        return "all" if self.defects is None else str(self.defects)

    def folder(self, runs: Path, split: Path | None, seed: int) -> Path:
        """Returns where the run on a split with a seed lies."""
        return runs / f"{self.experiment.stem}_{split.stem if split else 'own'}_{self.amount}_seed{seed}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains and evaluates what has not been yet, then prints the table."""
    parser = argparse.ArgumentParser(
        usage="%(prog)s [options] pretrained scratch [-- flags of both experiments]",
        description="What a pretrained encoder is worth.",
    )
    parser.add_argument("pretrained", type=Path, help="experiment with an encoder")
    parser.add_argument("scratch", type=Path, help="experiment that gets the same time")
    parser.add_argument(
        "--splits", type=Path, nargs="+", default=[None], help="default: that of the data set"
    )
    parser.add_argument(
        "--defects", type=int, nargs="*", default=[5, 3], help="beside all of them; default: 5 3"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/encoder_comparison"), help="default: %(default)s"
    )
    own, flags = split_arguments(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(own, argparse.Namespace(flags=flags))
    with clean_exit():
        _check_options(options)
        cells = [
            Cell(experiment, defects)
            for defects in (None, *options.defects)
            for experiment in (options.pretrained, options.scratch)
        ]
        for seed in options.seeds:
            for cell in cells:
                for split in options.splits:
                    _train(options, cell, split, seed)
        print(describe(cells, options.splits, options.runs, options.seeds))


def _check_options(options: argparse.Namespace) -> None:
    if options.pretrained.stem == options.scratch.stem:
        raise ConfigError(f"Both experiments are called '{options.scratch.stem}'. Expected two names.")
    check_spread(options.seeds, options.splits)


def check_spread(seeds: Sequence[int], splits: Sequence[Path | None]) -> None:
    """Refuses a single run, before it is trained.

    Raises:
        ConfigError: If there is one seed of one split.
    """
    if len(seeds) * len(splits) < 2:
        raise ConfigError("One seed of one split has no spread. Expected more --seeds, or more --splits.")


def describe(cells: Sequence[Cell], splits: Sequence[Path | None], runs: Path, seeds: Sequence[int]) -> str:
    """Returns a Markdown table: mean and standard deviation over the seeds."""
    lines = [
        f"| experiment | defective | {' | '.join(heading for heading, _ in FIGURES.values())} | minutes |",
        "|---" * (len(FIGURES) + 3) + "|",
    ]
    for cell in cells:
        aggregate, minutes = aggregate_cell(cell, splits, runs, seeds)
        figures = " | ".join(
            format_spread(aggregate.figures[name], places) for name, (_, places) in FIGURES.items()
        )
        lines.append(f"| {cell.experiment.stem} | {cell.amount} | {figures} | {minutes:.1f} |")
    return "\n".join(lines)


def aggregate_cell(
    cell: Cell, splits: Sequence[Path | None], runs: Path, seeds: Sequence[int]
) -> tuple[Aggregate, float]:
    """Returns the runs of a cell as one, and how many minutes one of them took on average."""
    folders = [cell.folder(runs, split, seed) for seed in seeds for split in splits]
    return aggregate_runs(folders), mean(_minutes(folder) for folder in folders)


def keep_defects(records: Sequence[Record], defects: int, seed: int) -> Iterator[Record]:
    """Yields the records of all splits, of the defective training photographs `defects` drawn by the seed.

    With none of them validation has none either: then there are good photographs alone, but to test.

    Raises:
        ConfigError: If there are fewer.
    """
    defective = [record.name for record in records if record.split == "train" and record.label]
    if defects > len(defective):
        raise ConfigError(f"--defects {defects}, but there are {len(defective)} to train on.")
    kept = set(np.random.default_rng(seed).permutation(defective)[:defects].tolist())
    dropped = set(defective) - kept
    if not defects:
        dropped |= {record.name for record in records if record.split == "val" and record.label}
    return (record for record in records if record.name not in dropped)


def _train(options: argparse.Namespace, cell: Cell, split: Path | None, seed: int) -> None:
    def steps(flags: Sequence[str]) -> Sequence[str]:
        if cell.experiment != options.scratch:
            return ()
        partner = Cell(options.pretrained, cell.defects).folder(options.runs, split, seed)
        return _steps_for(_minutes(partner), cell.experiment, flags)

    train_cell(cell, options.runs, split, seed, options.flags, steps)


def train_cell(
    cell: Cell,
    runs: Path,
    split: Path | None,
    seed: int,
    flags: Sequence[str],
    more: Callable[[Sequence[str]], Sequence[str]] = lambda _: (),
) -> None:
    """Trains and evaluates an experiment on a split with a seed, unless that has been done.

    Args:
        cell: The experiment, and its defective training photographs.
        runs: Folder of all runs.
        split: Split file; None = that of the data set.
        seed: Of the training, and of what is drawn.
        flags: Of the experiment.
        more: Gives further flags, by those that there are.

    Raises:
        SegdecError: If there are fewer defective photographs, a command fails, or the run that there is was
            made with other flags.
    """
    folder = cell.folder(runs, split, seed)
    words = [*flags, *([] if split is None else ["--data.splits", str(split)])]
    if (folder / MINUTES).exists():
        _check_same(folder, load_experiment(cell.experiment, words))
        return
    if cell.defects is not None:
        own = _write_split(load_experiment(cell.experiment, words), folder, cell, seed)
        words += ["--data.splits", str(own)]
    train_once(cell.experiment, folder, seed, [*words, *more(words)])


def _check_same(folder: Path, config: ExperimentConfig) -> None:
    """Refuses a run of other flags; what the comparison and the data set have set themselves, they may."""
    own = {"seed", "network.num_classes", *(f"stages.{name}.steps" for name, _ in config.stages)}
    for field, old, new in differing_settings(RunFolder.finished(folder).experiment(), config, own):
        raise RunError(
            f"'{folder}' was made with {field} = {old!r}, now it is {new!r}. Choose another folder of --runs."
        )


def _write_split(config: ExperimentConfig, folder: Path, cell: Cell, seed: int) -> Path:
    dataset = list_dataset(config.data, config.data.splits)
    path = folder.parent / f"{folder.name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_splits(path, keep_defects(dataset.records, cell.defects or 0, seed))
    return path


def _steps_for(minutes: float, experiment: Path, flags: Sequence[str]) -> list[str]:
    """Flags for stages that take so long together."""
    with ProcessPoolExecutor(1, get_context("spawn")) as other:  # TensorFlow keeps its memory to its end
        expected_s = other.submit(_expected_s, experiment, flags).result()
    return scaled_steps(load_experiment(experiment, list(flags)), 60.0 * minutes / expected_s)


def scaled_steps(config: ExperimentConfig, factor: float) -> list[str]:
    """Returns flags that give each stage so many times its steps."""
    stages = [(name, max(1, round(factor * stage.steps))) for name, stage in config.stages if stage.steps]
    return [word for name, steps in stages for word in (f"--stages.{name}.steps", str(steps))]


def _expected_s(experiment: Path, flags: Sequence[str]) -> float:
    from training.dry_run import dry_run

    return dry_run(load_experiment(experiment, list(flags))).total_s


def _minutes(folder: Path) -> float:
    return float(json.loads((folder / MINUTES).read_text(encoding="utf-8")))


def format_spread(spread: MeanStd, places: int) -> str:
    """Returns a figure with its standard deviation, where it has one."""
    if spread.mean is None:
        return "–"
    return f"{spread.mean:.{places}f}" + ("" if spread.std is None else f" ± {spread.std:.{places}f}")


if __name__ == "__main__":
    main()
