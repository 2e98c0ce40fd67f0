"""The report of joined runs: one HTML file without pictures, which are in the reports of the runs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from segdec.runtime.counts import count_of
from segdec.runtime.files import write_text_atomic
from training.formatting import format_figure, format_rate, format_score
from training.metrics.aggregation import Aggregate, AggregatedRun, MeanStd
from training.metrics.photograph_results import PhotographResult
from training.reporting.charts import LabelledScores, curve_charts, reliability_chart, score_chart
from training.reporting.html_page import format_interval, render
from training.reporting.summary import (
    describe,
    describe_reliability,
    list_doubts,
    list_remarks,
    list_split_warnings,
)
from training.reporting.tables import run_columns

FIGURE_NAMES = {
    "average_precision": "Average precision, step-wise",
    "average_precision_trapezoid": "Average precision, trapezoid, for comparison with COMIND",
    "auroc": "AUROC",
    "false_negatives": "False negatives",
    "false_negative_rate": "Miss rate",
    "false_positives": "False positives",
    "false_positive_rate": "False alarm rate",
    "reviews": "For review",
    "defective_reviews": "Defective ones for review",
    "fp_at_full_recall": "False positives at FN = 0, in hindsight",
    "label_accuracy": "Class accuracy",
    "pixel_f1": "Pixel F1",
    "pixel_iou": "Pixel IoU",
    "pixel_precision": "Pixel precision",
    "pixel_recall": "Pixel recall",
    "pixel_average_precision": "Pixel AP, step-wise",
    "aupro": "AUPRO",
    "calibration_error": "Expected calibration error of the score",
    "calibration_error_before": "Expected calibration error, before calibration",
    "brier": "Brier score of the score",
    "brier_before": "Brier score, before calibration",
}
"""Names of the pooled metrics."""

REVIEWS = ("reviews", "defective_reviews")
"""Omitted if no run has images for review."""

BEFORE = ("calibration_error_before", "brier_before")
"""Omitted if the scores are not calibrated."""

COUNTS = ("false_negatives", "false_positives", "fp_at_full_recall", *REVIEWS)
"""Metrics that are integers."""


@dataclass(frozen=True)
class Mistake:
    """An image that at least one run labels wrong: number of these runs, and label and score of each."""

    name: str
    true_label: str
    fold: int
    wrong: int
    predictions: tuple[str, ...]


def write_aggregate_report(path: Path, aggregate: Aggregate) -> None:
    """Writes the report of several runs, atomically. Reports of the runs are linked by relative path.
    Raises an `OSError` if the folder is missing or not writable.
    """
    worst = max(aggregate.pooled, key=lambda pool: pool.metrics.false_negatives)
    text = render(
        "aggregate.html.j2",
        title=f"{len(aggregate.runs)} runs joined, split '{aggregate.split}'",
        aggregate=aggregate,
        headline=_describe_aggregate(aggregate),
        warnings=list_split_warnings(aggregate.pooled[0].results),
        remarks=_list_aggregate_remarks(aggregate),
        doubts=list_doubts(replace(worst.metrics, intervals=aggregate.intervals)),
        columns=run_columns(aggregate),
        run_lines=[_describe_run(run, path, aggregate) for run in aggregate.runs],
        run_spread=_describe_spread(aggregate),
        figures_table=_figures_table(aggregate),
        reliability=_describe_reliability(aggregate),
        reliability_charts=_draw_reliability(aggregate),
        calibrated=_is_calibrated(aggregate),
        charts=_draw_charts(aggregate),
        mistakes=list_mistakes(aggregate),
    )
    write_text_atomic(path, text)


def _figures_table(aggregate: Aggregate) -> list[tuple[str, str, str]]:
    """Title, value and interval of each of `FIGURE_NAMES` that these runs have."""
    omitted = [] if "reviews" in run_columns(aggregate) else list(REVIEWS)
    omitted += [] if _is_calibrated(aggregate) else list(BEFORE)
    return [
        (title, format_spread(aggregate.figures[name], name), format_interval(aggregate.intervals.get(name)))
        for name, title in FIGURE_NAMES.items()
        if name not in omitted
    ]


def _describe_reliability(aggregate: Aggregate) -> str:
    pool = aggregate.pooled[0]
    if not _is_calibrated(aggregate):
        return "Not all runs are known to be calibrated: the pooled scores are not a probability."
    if aggregate.seeds == 1:
        return describe_reliability(pool.metrics, pool.defect_rate)
    rates = [each.defect_rate for each in aggregate.pooled if each.defect_rate is not None]
    return (
        f"The scores are calibrated to be probabilities where {format_rate(fmean(rates))} of the "
        "photographs are defective. One line per seed."
    )


def _is_calibrated(aggregate: Aggregate) -> bool:
    return all(pool.defect_rate is not None for pool in aggregate.pooled)


def _describe_aggregate(aggregate: Aggregate) -> str:
    if aggregate.seeds == 1:
        return describe(aggregate.pooled[0])
    wrong = [len(pool.errors()) for pool in aggregate.pooled]
    held = [pool.metrics.reviews for pool in aggregate.pooled]
    reviews = f"; {min(held)} to {max(held)} are left for review" if any(held) else ""
    return (
        f"{min(wrong)} to {max(wrong)} of {aggregate.pooled[0].metrics.images} images are labelled wrong, "
        f"{np.mean(wrong):.1f} on average over {aggregate.seeds} runs on each{reviews}."
    )


def _list_aggregate_remarks(aggregate: Aggregate) -> list[str]:
    metrics = aggregate.pooled[0].metrics
    setting = (
        f"{count_of(aggregate.folds, 'set')} of photographs, {count_of(aggregate.seeds, 'run')} on each: "
        f"{count_of(metrics.images, 'photograph')}, {metrics.defective} of them defective."
    )
    if aggregate.seeds == 1:
        own = "Each is evaluated at the threshold of its own run."
        return [f"{setting} {own}", *list_remarks(aggregate.pooled[0])]
    spread = aggregate.figures["average_precision"]
    chance = (
        f"The average precision varies between seeds by ± {spread.std:.3f} (one standard deviation): "
        "differences of this size between two settings are not significant."
    )
    return [setting, *([chance] if spread.std is not None else [])]


def _describe_spread(aggregate: Aggregate) -> dict[str, list[str]]:
    """Mean and standard deviation below the table of runs."""
    spreads = [(aggregate.metrics_over_runs[name], name) for name in run_columns(aggregate)]
    return {
        "mean": [_format_mean(spread.mean, name) for spread, name in spreads],
        "standard deviation": [_format_mean(spread.std, name) for spread, name in spreads],
    }


def _format_mean(value: float | None, name: str) -> str:
    return format_figure(value) if value is None or name not in COUNTS else f"{value:.1f}"


def _describe_run(run: AggregatedRun, report: Path, aggregate: Aggregate) -> Mapping[str, object]:
    """One row of the table of runs, with the name of the folder if it is unique, else the path."""
    figures, own = run.metrics.scalars(), run.path / "report.html"
    is_unique = sum(other.path.name == run.path.name for other in aggregate.runs) == 1
    return {
        "name": run.path.name if is_unique else str(run.path),
        "link": quote(os.path.relpath(own, report.parent)) if own.exists() else None,
        "fold": run.fold,
        "seed": "–" if run.seed is None else run.seed,
        "threshold": format_score(run.metrics.threshold),
        "cells": [_format_value(figures[name], name) for name in run_columns(aggregate)],
    }


def format_spread(spread: MeanStd, name: str) -> str:
    """Formats mean ± standard deviation of a metric; the value alone for one run."""
    if spread.mean is None or spread.std is None:
        return _format_value(spread.mean, name)
    return f"{_format_mean(spread.mean, name)} ± {_format_mean(spread.std, name)}"


def _format_value(value: float | None, name: str) -> str:
    return f"{value:.0f}" if name in COUNTS and value is not None else format_figure(value)


def _draw_charts(aggregate: Aggregate) -> list[tuple[str, Markup]]:
    pooled = [LabelledScores.from_results(pool.results) for pool in aggregate.pooled if pool.results]
    # A single fold is its own pool: draw its runs once.
    several = [run for run in aggregate.runs if run.results and aggregate.folds > 1]
    runs = [LabelledScores.from_results(run.results) for run in several]
    scores = [("Scores, all runs", score_chart(pooled[0], None))] if len(pooled) == 1 else []
    return [*scores, *curve_charts(pooled, runs=runs)]


def _draw_reliability(aggregate: Aggregate) -> list[tuple[str, Markup]]:
    reliabilities = [each for pool in aggregate.pooled if (each := pool.reliability())]
    if not reliabilities:
        return []
    before = aggregate.pooled[0].reliability(calibrated=False) if aggregate.seeds == 1 else None
    return [("Reliability", reliability_chart(reliabilities, before))]


def list_mistakes(aggregate: Aggregate) -> list[Mistake]:
    """Returns the images labelled wrong, by falling number of runs."""
    folds = {result.name: run.fold for run in aggregate.runs for result in run.results}
    wrong: dict[str, list[PhotographResult]] = {}
    for pool in aggregate.pooled:
        for result in pool.errors():
            wrong.setdefault(result.name, []).append(result)
    mistakes = []
    for name, results in wrong.items():
        predictions = tuple(
            f"{result.predicted_label}, {format_score(result.score)} at {format_score(result.threshold)}"
            for result in results
        )
        mistakes.append(Mistake(name, results[0].true_label, folds[name], len(results), predictions))
    return sorted(mistakes, key=lambda mistake: (-mistake.wrong, mistake.true_label, mistake.name))
