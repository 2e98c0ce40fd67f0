"""Measures an experiment with few defective training photographs, or with good ones alone.

    python -m datasets split kolektor data/kolektorsdd folds --folds 5
    python -m benchmarks.few_defects training/experiments/kolektor_mobilenet.toml --defects 0 \
        --splits folds/*.txt -- --data.root data/kolektorsdd --augmentation.synthetic 0.5

It is trained for each split, number of defective training photographs and seed. With 0 defects validation
has none either.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.training_runs import (
    Cell,
    Splits,
    aggregate_cell,
    describe,
    parse_arguments,
    runs_parser,
    train_cell,
)
from segdec.runtime.cli import clean_exit
from training.metrics.aggregation import Aggregate, MeanStd, mean_std

HEADING = ("defective", "AP, mean of the splits", "AP, pooled", "AUROC, pooled", "FP at FN = 0")


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains and evaluates the missing runs, then prints a table with a row for each number of defects."""
    parser = runs_parser("experiment", "Measures an experiment with few defects.", "runs/few_defects")
    parser.add_argument("experiment", type=Path)
    parser.add_argument(
        "--defects",
        type=lambda text: None if text == "all" else int(text),
        nargs="+",
        default=[0, 1, 3, 5],
        metavar="N",
        help="or 'all'; default: 0 1 3 5",
    )
    with clean_exit():
        options, flags = parse_arguments(parser, arguments)
        cells = [Cell(options.experiment, defects) for defects in options.defects]
        for seed in options.seeds:
            for cell in cells:
                for split in options.splits:
                    train_cell(cell, options.runs, split, seed, flags)
        print(tabulate(cells, options.splits, options.runs, options.seeds))


def tabulate(cells: Sequence[Cell], splits: Splits, runs: Path, seeds: Sequence[int]) -> str:
    """Returns a Markdown table: mean and standard deviation over the seeds."""
    rows = []
    for cell in cells:
        aggregate, minutes = aggregate_cell(cell, splits, runs, seeds)
        figures = [
            (average_precision_by_split(aggregate), 3),
            (aggregate.figures["average_precision"], 3),
            (aggregate.figures["auroc"], 3),
            (aggregate.figures["fp_at_full_recall"], 1),
        ]
        rows.append(([cell.amount], figures, minutes))
    return describe(HEADING, rows)


def average_precision_by_split(aggregate: Aggregate) -> MeanStd:
    """Returns the mean AP of the splits over the seeds, which does not pool scores of different networks."""
    of_seed: dict[int, list[float | None]] = defaultdict(list)
    for run in aggregate.runs:
        of_seed[run.place].append(run.metrics.average_precision)
    return mean_std([mean_std(values).mean for values in of_seed.values()])


if __name__ == "__main__":
    main()
