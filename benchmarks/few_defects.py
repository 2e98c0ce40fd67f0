"""What an experiment learns from few defective photographs, or from good ones alone.

    python -m datasets split kolektor data/kolektorsdd folds --folds 5
    python -m benchmarks.few_defects training/experiments/kolektor_mobilenet.toml --defects 0 \
        --splits folds/*.txt -- --data.root data/kolektorsdd --augmentation.synthetic 0.5

It is trained for each split, number of defective training photographs and seed, which draws those that stay.
With none of them validation has none either. Runs that have been made are kept, so that the same command goes
on where it was stopped. Flags after `--` are those of the experiment.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.ablation import split_arguments
from benchmarks.encoder_comparison import Cell, aggregate_cell, check_spread, format_spread, train_cell
from segdec.runtime.cli import clean_exit
from training.metrics.aggregation import Aggregate, MeanStd, mean_std


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains and evaluates what has not been yet, then prints a table: a line a number of defects."""
    parser = argparse.ArgumentParser(
        usage="%(prog)s [options] experiment [-- flags of the experiment]",
        description="What few defective photographs teach.",
    )
    parser.add_argument("experiment", type=Path)
    parser.add_argument(
        "--defects",
        type=_defects,
        nargs="+",
        default=[0, 1, 3, 5],
        metavar="N",
        help="or 'all'; default: 0 1 3 5",
    )
    parser.add_argument(
        "--splits", type=Path, nargs="+", default=[None], help="default: that of the data set"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")
    parser.add_argument("--runs", type=Path, default=Path("runs/few_defects"), help="default: %(default)s")
    own, flags = split_arguments(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(own)
    with clean_exit():
        check_spread(options.seeds, options.splits)
        cells = [Cell(options.experiment, defects) for defects in options.defects]
        for seed in options.seeds:
            for cell in cells:
                for split in options.splits:
                    train_cell(cell, options.runs, split, seed, flags)
        print(describe(cells, options.splits, options.runs, options.seeds))


def _defects(text: str) -> int | None:
    return None if text == "all" else int(text)


def describe(cells: Sequence[Cell], splits: Sequence[Path | None], runs: Path, seeds: Sequence[int]) -> str:
    """Returns a Markdown table: mean and standard deviation over the seeds."""
    lines = [
        "| defective | AP, mean of the splits | AP, pooled | AUROC, pooled | FP at FN = 0 | minutes |",
        "|---|---|---|---|---|---|",
    ]
    for cell in cells:
        aggregate, minutes = aggregate_cell(cell, splits, runs, seeds)
        figures = [
            format_spread(average_precision_by_split(aggregate), 3),
            format_spread(aggregate.figures["average_precision"], 3),
            format_spread(aggregate.figures["auroc"], 3),
            format_spread(aggregate.figures["fp_at_full_recall"], 1),
        ]
        lines.append(f"| {cell.amount} | {' | '.join(figures)} | {minutes:.1f} |")
    return "\n".join(lines)


def average_precision_by_split(aggregate: Aggregate) -> MeanStd:
    """Returns the mean of the splits' AP over the seeds; scores of different networks are not mixed in it."""
    of_seed: dict[int, list[float | None]] = defaultdict(list)
    for run in aggregate.runs:
        of_seed[run.place].append(run.metrics.average_precision)
    return mean_std([mean_std(values).mean for values in of_seed.values()])


if __name__ == "__main__":
    main()
