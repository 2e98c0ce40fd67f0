"""Joining of evaluated runs: folds of a data set, seeds, or both.

Runs on the same images are seeds of one fold; runs on other images are other folds. All folds have the same
number of seeds, and no image is in two folds. For each seed the results of all folds are pooled; each image
keeps the threshold and score of its own run. Metrics, not scores, are averaged over seeds.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from segdec.errors import RunError
from segdec.runtime.csv_cells import neutralise_cells
from segdec.runtime.files import write_text_atomic
from training.metrics.evaluation import Evaluation
from training.metrics.intervals import Interval, bootstrap_intervals
from training.metrics.metrics import Metrics, compute_metrics
from training.metrics.photograph_results import PhotographResult
from training.metrics.storage import EvaluatedRun, load_evaluation

JSON, CSV = "joined.json", "joined.csv"

LIMITS = ("threshold", "review_threshold")
"""Scalars of a run that are settings, not metrics."""


@dataclass(frozen=True)
class MeanStd:
    """Mean, sample standard deviation (n − 1) and number of the defined values; None if undefined."""

    mean: float | None
    std: float | None
    count: int


@dataclass(frozen=True)
class AggregatedRun:
    """One of the runs, without intervals; `fold`: index of its set of images; `place`: index in the fold."""

    path: Path
    fold: int
    place: int
    seed: int | None
    results: tuple[PhotographResult, ...]
    metrics: Metrics


@dataclass(frozen=True)
class Aggregate:
    """Several joined runs: `folds` sets of images, each with `seeds` runs.

    Attributes:
        pooled: For each seed the evaluation of all folds together, without intervals.
        figures: Mean and deviation of the pooled metrics, over the seeds.
        metrics_over_runs: Mean and deviation of the metrics of single runs, over all runs.
        intervals: 95 % intervals of the pooled metrics, averaged over the seeds.
    """

    split: str
    classes: tuple[str, ...]
    folds: int
    seeds: int
    runs: tuple[AggregatedRun, ...]
    pooled: tuple[Evaluation, ...]
    figures: Mapping[str, MeanStd]
    metrics_over_runs: Mapping[str, MeanStd]
    intervals: Mapping[str, Interval | None]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything except results and histograms, ready for JSON."""
        return {
            "split": self.split,
            "classes": list(self.classes),
            "folds": self.folds,
            "seeds": self.seeds,
            "figures": {name: asdict(spread) for name, spread in self.figures.items()},
            "intervals": {name: each and asdict(each) for name, each in self.intervals.items()},
            "over_runs": {name: asdict(spread) for name, spread in self.metrics_over_runs.items()},
            "pooled": [evaluation.metrics.to_dict() for evaluation in self.pooled],
            "runs": [{**_describe_run(run), "metrics": run.metrics.to_dict()} for run in self.runs],
        }


def aggregate_runs(folders: Sequence[Path]) -> Aggregate:
    """Joins evaluated runs. Raises a `RunError` if one was not evaluated, or they cannot be joined."""
    runs = [load_evaluation(folder) for folder in folders]
    _check_compatible(runs)
    folds = _sort_into_folds(runs)
    pooled = tuple(_pool(members) for members in zip(*folds, strict=True))
    places = {run.path: (fold, place) for fold, own in enumerate(folds) for place, run in enumerate(own)}
    members = tuple(
        AggregatedRun(run.path, *places[run.path], run.seed, run.results, _pool([run]).metrics)
        for run in runs
    )
    return Aggregate(
        split=runs[0].split,
        classes=runs[0].classes,
        folds=len(folds),
        seeds=len(pooled),
        runs=members,
        pooled=pooled,
        figures=_mean_stds([evaluation.metrics for evaluation in pooled]),
        metrics_over_runs=_mean_stds([member.metrics for member in members]),
        intervals=bootstrap_intervals([evaluation.results for evaluation in pooled]),
    )


def _check_compatible(runs: Sequence[EvaluatedRun]) -> None:
    if len(runs) < 2:
        raise RunError(f"{len(runs)} run given, expected at least two to join.")
    first, seen = runs[0], set()
    for run in runs:
        if run.path.resolve() in seen:
            raise RunError(f"The run '{run.path}' was named twice. Name each run once.")
        seen.add(run.path.resolve())
        for what, own, others in (
            ("classes", ", ".join(run.classes), ", ".join(first.classes)),
            ("split", run.split, first.split),
        ):
            if own != others:
                raise RunError(
                    f"'{run.path}' was evaluated on the {what} {own}, '{first.path}' on {others}. "
                    "Expected the same: join runs of one task, evaluated on one split."
                )


def _sort_into_folds(runs: Sequence[EvaluatedRun]) -> list[list[EvaluatedRun]]:
    """The runs of each set of images; the n-th runs of all folds belong to one seed."""
    folds: dict[frozenset[str], list[EvaluatedRun]] = {}
    for run in runs:
        names = frozenset(result.name for result in run.results)
        for others, members in folds.items():
            _check_relation(run, names, members[0], others)
        folds.setdefault(names, []).append(run)
    first, *rest = folds.values()
    for members in rest:
        if len(members) != len(first):
            raise RunError(
                f"'{first[0].path}' is one of {len(first)} runs on its photographs, '{members[0].path}' one "
                f"of {len(members)} on others. Expected the same number of seeds for each fold: omit some, "
                "or train the missing ones."
            )
    return _align_seeds([first, *rest])


def _check_relation(
    run: EvaluatedRun, names: frozenset[str], other: EvaluatedRun, others: frozenset[str]
) -> None:
    shared = names & others
    if shared and names != others:
        raise RunError(
            f"'{run.path}' and '{other.path}' share {len(shared)} of {len(names)} and {len(others)} "
            "photographs. Expected all (other seeds) or none (other folds)."
        )
    mine, theirs = run.results_by_name(), other.results_by_name()
    for name in sorted(shared):
        if mine[name].truth != theirs[name].truth:
            raise RunError(
                f"'{name}' is {mine[name].true_label} in '{run.path}' and {theirs[name].true_label} in "
                f"'{other.path}'. Expected the same data set: evaluate both again."
            )


def _align_seeds(folds: list[list[EvaluatedRun]]) -> list[list[EvaluatedRun]]:
    """Orders the runs of each fold by seed if all folds have the same seeds."""
    seeds = [[run.seed for run in members] for members in folds]
    wanted = set(seeds[0])
    if None in wanted or any(len(own) != len(wanted) or set(own) != wanted for own in seeds):
        return folds
    return [sorted(members, key=lambda run: seeds[0].index(run.seed)) for members in folds]


def _pool(members: Sequence[EvaluatedRun]) -> Evaluation:
    """All folds of a seed; its defect rate is the mean of the runs' rates, if all are calibrated."""
    classes, rates = members[0].classes, [run.defect_rate for run in members if run.defect_rate is not None]
    results = tuple(result for run in members for result in run.results)
    mask_scores = reduce(add, (run.mask_scores for run in members))
    rate = fmean(rates) if len(rates) == len(members) else None
    metrics = compute_metrics(results, classes, mask_scores, defect_rate=rate)
    return Evaluation(classes, results, metrics, mask_scores, rate)


def _mean_stds(all_metrics: Sequence[Metrics]) -> dict[str, MeanStd]:
    figures = [metrics.scalars() for metrics in all_metrics]
    return {name: mean_std([each[name] for each in figures]) for name in figures[0] if name not in LIMITS}


def mean_std(values: Sequence[float | None]) -> MeanStd:
    """Returns mean and standard deviation of the defined values."""
    known = [value for value in values if value is not None]
    return MeanStd(
        mean=fmean(known) if known else None, std=stdev(known) if len(known) > 1 else None, count=len(known)
    )


def _describe_run(run: AggregatedRun) -> dict[str, Any]:
    return {"run": str(run.path), "fold": run.fold, "place": run.place, "seed": run.seed}


def write_aggregate(folder: Path, aggregate: Aggregate) -> None:
    """Writes `joined.json` and, with one line per run, `joined.csv` into `folder`, which is created.
    Raises an `OSError` if the disk is full or not writable.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text_atomic(folder / JSON, json.dumps(aggregate.to_dict(), indent=2) + "\n")
    lines = [{**_describe_run(run), **run.metrics.scalars()} for run in aggregate.runs]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(neutralise_cells(lines[0]))
    writer.writerows(neutralise_cells(line.values()) for line in lines)
    write_text_atomic(folder / CSV, text.getvalue())
