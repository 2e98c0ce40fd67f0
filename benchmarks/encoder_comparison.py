"""Compares a pretrained encoder with training from scratch in the same time, for all and for few defects.

    python -m datasets split kolektor data/kolektorsdd folds --folds 5
    python -m benchmarks.encoder_comparison training/experiments/kolektor_mobilenet.toml \
        training/experiments/kolektor_compact.toml --splits folds/*.txt -- --data.root data/kolektorsdd

Both are trained for each split, number of defective training photographs and seed. The second experiment
gets as many steps as fit, by its estimate, into the minutes of the first one.
"""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks.training_runs import (
    Cell,
    Splits,
    aggregate_cell,
    describe,
    parse_arguments,
    read_minutes,
    runs_parser,
    train_cell,
)
from segdec.errors import ConfigError
from segdec.runtime.cli import clean_exit
from training.config import ExperimentConfig
from training.experiment_file import load_experiment

FIGURES = {
    "average_precision": ("AP", 3),
    "fp_at_full_recall": ("FP at FN = 0", 1),
    "pixel_f1": ("pixel F1", 3),
}
"""Heading and decimals of each figure, pooled over the splits."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains and evaluates the missing runs, then prints the table."""
    text = "Compares a pretrained encoder with training from scratch."
    parser = runs_parser("pretrained scratch", text, "runs/encoder_comparison")
    parser.add_argument("pretrained", type=Path, help="experiment with an encoder")
    parser.add_argument("scratch", type=Path, help="experiment that gets the same time")
    parser.add_argument("--defects", type=int, nargs="*", default=[5, 3], help="besides all; default: 5 3")
    with clean_exit():
        options, flags = parse_arguments(parser, arguments)
        if options.pretrained.stem == options.scratch.stem:
            name = options.scratch.stem
            raise ConfigError(f"Both experiments are named '{name}'. Expected different names.")
        cells = [
            Cell(experiment, defects)
            for defects in (None, *options.defects)
            for experiment in (options.pretrained, options.scratch)
        ]
        for seed in options.seeds:
            for cell in cells:
                for split in options.splits:
                    pretrained = Cell(options.pretrained, cell.defects).folder(options.runs, split, seed)
                    same_time = partial(_same_time, cell.experiment, pretrained)
                    more = [same_time] if cell.experiment == options.scratch else []
                    train_cell(cell, options.runs, split, seed, flags, *more)
        print(tabulate(cells, options.splits, options.runs, options.seeds))


def tabulate(cells: Sequence[Cell], splits: Splits, runs: Path, seeds: Sequence[int]) -> str:
    """Returns a Markdown table: mean and standard deviation over the seeds."""
    rows = []
    for cell in cells:
        aggregate, minutes = aggregate_cell(cell, splits, runs, seeds)
        figures = [(aggregate.figures[name], decimals) for name, (_, decimals) in FIGURES.items()]
        rows.append(([cell.experiment.stem, cell.amount], figures, minutes))
    return describe(["experiment", "defective", *(heading for heading, _ in FIGURES.values())], rows)


def scaled_steps(config: ExperimentConfig, factor: float) -> list[str]:
    """Returns flags that multiply the steps of each stage."""
    stages = [(name, max(1, round(factor * stage.steps))) for name, stage in config.stages if stage.steps]
    return [word for name, steps in stages for word in (f"--stages.{name}.steps", str(steps))]


def _same_time(experiment: Path, pretrained: Path, flags: Sequence[str]) -> Sequence[str]:
    """Returns flags for stages which take as long as the run `pretrained`."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:  # frees TensorFlow's memory
        expected_s = process.submit(_expected_s, experiment, flags).result()
    config = load_experiment(experiment, list(flags))
    return scaled_steps(config, 60.0 * read_minutes(pretrained) / expected_s)


def _expected_s(experiment: Path, flags: Sequence[str]) -> float:
    from training.dry_run import dry_run

    return dry_run(load_experiment(experiment, list(flags))).total_s


if __name__ == "__main__":
    main()
