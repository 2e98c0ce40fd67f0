"""How often the true size of a defect is in the interval that a model measures, on test photographs.

    python -m benchmarks.suite data --sets capsule leather --seeds 0 1 --defects all --out out
    python -m benchmarks.true_sizes data --sets capsule leather --seeds 0 1 --models out/models

Only defects with a mask that the model finds count. `above`: the true size is above the interval, so that an
inspection plan may accept a defect that is too large; `below`: it may reject one that is small enough.
`interval` is the median of the largest possible size, divided by the smallest.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness import markdown_table
from benchmarks.suite.sets import SuiteSet, load_set
from datasets.reading import read
from datasets.supervision import merged_defects
from segdec.plan.size_intervals import MeasuredSizes
from segdec.predictor import Predictor
from segdec.runtime.cli import clean_exit, import_tensorflow
from training.metrics.evaluation import is_known
from training.metrics.size_errors import ComparedSizes, compare_sizes

NAMES = ("length", "width", "area")


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table with a row for each data set, and one for all."""
    parser = argparse.ArgumentParser(description="Errors of the sizes that models measure.")
    parser.add_argument("data", type=Path, metavar="FOLDER", help="folder of the data sets")
    parser.add_argument("--sets", nargs="+", required=True, metavar="NAME", help="data sets with masks")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="default: 0")
    parser.add_argument("--models", type=Path, required=True, metavar="FOLDER", help="models of the suite")
    options = parser.parse_args(arguments)
    import_tensorflow()
    with clean_exit():
        rows, everything = [], []
        for name in options.sets:
            source = load_set(options.data / name)
            folders = [options.models / f"{name}_all_seed{seed}" for seed in options.seeds]
            measured = [pair for folder in folders for pair in measure(source, Predictor.load(folder))]
            rows.append(describe(name, measured))
            everything += measured
        columns = [f"{name} {what}" for name in NAMES for what in ("above", "below", "interval")]
        print(markdown_table(["set", "defects", *columns], [*rows, describe("all", everything)]))


def measure(source: SuiteSet, predictor: Predictor) -> list[tuple[ComparedSizes, MeasuredSizes]]:
    """Returns the true and the measured sizes of the defects that a model finds in test photographs."""
    model, dataset = predictor.config, source.dataset
    if model.classes != dataset.classes:
        dataset = merged_defects(dataset)
    compared: list[ComparedSizes] = []
    for item in dataset.of_split("test"):
        sample = read(item)
        if sample.label and is_known(sample) and sample.mask is not None:
            [prediction] = predictor.predict([sample.image])
            compared += compare_sizes(prediction, model, sample.mask > 0)
    return [
        (one, MeasuredSizes.estimate(one.measured, one.possible, model.size_errors, cut=False))
        for one in compared
    ]


def describe(name: str, measured: Sequence[tuple[ComparedSizes, MeasuredSizes]]) -> list[str]:
    """Returns the cells of a row."""
    cells = [name, str(len(measured))]
    for size in NAMES:
        true = np.array([getattr(compared.true, size) for compared, _ in measured])
        low, high = (
            np.array([getattr(getattr(sizes, size), limit) for _, sizes in measured])
            for limit in ("low", "high")
        )
        cells += [
            str(np.count_nonzero(true > high)),
            str(np.count_nonzero(true < low)),
            f"{np.median(high / np.maximum(low, 1e-9)):.1f}",
        ]
    return cells


if __name__ == "__main__":
    main()
