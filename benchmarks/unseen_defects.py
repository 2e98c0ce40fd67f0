"""Kinds of defects that the training has not seen: AUROC with and without the memory of good surface.

    python -m benchmarks.unseen_defects DATA --write docs/evaluation.md

DATA holds one folder for each data set, as for `benchmarks.suite`. For each kind of defect, `fit` trains
without it; measured is how well the exported model separates the test photographs of this kind from the good
ones. Without the memory, the same model is measured with the decision of its heads alone. Results are stored
in --out at once; the same command measures the missing ones.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import ClassVar

import numpy as np

from benchmarks.harness import describe_machine, markdown_table, wrap_lines
from benchmarks.suite.__main__ import load_results, measure_missing
from benchmarks.suite.child_process import call_in_process
from benchmarks.suite.fitting import FitRun, FitSettings, measure_model, run_fit
from benchmarks.suite.results import FitResult, Result, measure_scores
from benchmarks.suite.sets import SuiteSet, list_sets
from benchmarks.suite.table import replace_marked, split_marked
from datasets.reading import read
from segdec.errors import ConfigError
from segdec.runtime.cli import clean_exit, import_tensorflow, parse_seed

SETS = ("leather", "magnetic_tile")
"""Data sets with several kinds of defects."""

MARKER = "<!-- unseen defects -->"

HEADING = ("set", "unseen kind", "test photographs", "AUROC with memory", "without", "difference")


@dataclass(frozen=True, kw_only=True)
class UnseenResult(FitResult):
    """A measurement on the good test photographs and the defective ones of a kind that training has not seen.

    Attributes:
        unseen: The kind of defect.
        auroc_without: AUROC of the decision alone.
    """

    unseen: str
    auroc_without: float


@dataclass(frozen=True)
class UnseenRun(FitRun):
    """One run of `fit` without a kind of defect; `source` has been reduced by `leave_out`."""

    unseen: str

    kind: ClassVar[type[FitResult]] = UnseenResult

    @property
    def name(self) -> str:
        """Name of the run and its files."""
        return f"{self.source.name}_without_{self.unseen}_seed{self.seed}"

    def measure(self) -> UnseenResult:
        """Trains and measures; raises a `SegdecError` if that fails."""
        seconds = run_fit(self)
        return call_in_process(measure_unseen, self, seconds)


def leave_out(source: SuiteSet) -> Iterator[tuple[str, SuiteSet]]:
    """Yields each kind of defect in test with a reduced set: training without it, test without the others.

    Raises:
        ConfigError: If the set has fewer than two kinds of defects in training.
    """
    classes = source.dataset.classes
    trained = Counter(item.label for item in source.training(None, 0) if item.label)
    if len(trained) < 2:
        raise ConfigError(
            f"The training photographs of '{source.name}' show {len(trained)} kind of defects. Expected at "
            "least two kinds, since one of them is left out: check --sets."
        )
    for label in sorted({item.label for item in source.test if item.label}):
        items = tuple(
            item
            for item in source.dataset.items
            if (item.label in (0, label) if item.split == "test" else item.label != label)
        )
        yield classes[label], replace(source, dataset=replace(source.dataset, items=items))


def measure_unseen(run: UnseenRun, seconds: float) -> UnseenResult:
    """Measures the exported model of a run, and its decision alone; `seconds` is the duration of `fit`.

    Raises:
        SegdecError: If the model or a photograph cannot be read.
    """
    combined = measure_model(run, seconds)
    import_tensorflow()
    from segdec.engines.tensorflow import NetworkEngine
    from segdec.network.score_combination import NEVER
    from segdec.predictor import Predictor
    from training.run.folder import RunFolder

    folder = RunFolder(run.options.out / "runs" / run.name)
    network = folder.network()
    if network.combination is not None:
        network.combination.set_combination(np.eye(len(network.combination.kernel))[0], 0.0, NEVER)
    predictor = Predictor(NetworkEngine(network), folder.result().model)
    scores = [predictor.predict([read(item).image])[0].score for item in run.source.test]
    _, auroc = measure_scores([item.label > 0 for item in run.source.test], scores)
    return UnseenResult(**asdict(combined), unseen=run.unseen, auroc_without=auroc)


def tabulate(runs: Sequence[UnseenRun], results: Mapping[str, Result]) -> str:
    """Returns a Markdown table: medians over the seeds, and means over the kinds."""
    rows, figures = [], []
    for name, unseen in dict.fromkeys((run.source.name, run.unseen) for run in runs):
        own = [run.name for run in runs if (run.source.name, run.unseen) == (name, unseen)]
        found = [result for run in own if isinstance(result := results.get(run), UnseenResult)]
        if not found:
            continue
        figures.append(
            tuple(median(getattr(one, key) for one in found) for key in ("auroc", "auroc_without"))
        )
        tested = f"{found[0].good} good, {found[0].defective} defective"
        rows.append([name, unseen, tested, *_cells(*figures[-1])])
    if figures:
        with_memory, without = (mean(values) for values in zip(*figures, strict=True))
        rows.append(["mean", "", "", *_cells(with_memory, without)])
    return markdown_table(HEADING, rows)


def _cells(with_memory: float, without: float) -> list[str]:
    return [f"{with_memory:.3f}", f"{without:.3f}", f"{with_memory - without:+.3f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures what is missing, prints the table and writes it if it is complete."""
    parser = argparse.ArgumentParser("python -m benchmarks.unseen_defects")
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder with one folder for each data set")
    add("--sets", nargs="+", default=list(SETS), metavar="NAME", help=f"default: {' '.join(SETS)}")
    add("--minutes", type=float, default=3.0, help="time limit of each fit (default: %(default)s)")
    add("--seeds", type=parse_seed, nargs="+", default=[0], metavar="N", help="default: 0")
    add("--encoder-weights", default="imagenet", metavar="FILE", help="of fit (default: %(default)s)")
    add("--out", type=Path, default=Path("build/unseen"), help="folder of the results (default: %(default)s)")
    add("--write", type=Path, metavar="FILE", help="Markdown file whose table is replaced")
    options = parser.parse_args(arguments)
    with clean_exit(group="train"):
        if options.write is not None:
            split_marked(options.write, MARKER)
        sets, errors = list_sets(options.data, options.sets)
        if errors:
            raise ConfigError("\n".join(errors.values()))
        settings = FitSettings(options.out, options.minutes, options.encoder_weights)
        reduced = [(kind, part) for source in sets for kind, part in leave_out(source)]
        runs = [
            UnseenRun(part, None, seed, settings, kind) for seed in options.seeds for kind, part in reduced
        ]
        results = load_results(runs, options.out)
        missing = [run for run in runs if run.name not in results]
        results |= measure_missing(missing, options.out)
        machine, seeds = describe_machine(), ", ".join(map(str, options.seeds))
        text = (
            f"`{settings}`; seeds {seeds}, medians; {machine['cores']} cores of {machine['processor']}, "
            f"{machine['date']}."
        )
        text = f"{tabulate(runs, results)}\n\n{wrap_lines(text)}"
        print(text, flush=True)
        if len(results) < len(runs):
            print("Results are missing; no file was changed.", file=sys.stderr)
            raise SystemExit(1)
        if options.write is not None:
            replace_marked(options.write, text, MARKER)


if __name__ == "__main__":
    main()
