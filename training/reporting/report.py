"""The report of an evaluation: one self-contained HTML file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from segdec.runtime.files import write_text_atomic
from training.data.subsets import pick_evenly
from training.formatting import format_percent
from training.metrics.evaluation import Evaluation
from training.metrics.metrics import Metrics
from training.metrics.photograph_results import PhotographResult
from training.metrics.rating import Rating
from training.reporting.charts import (
    LabelledScores,
    curve_charts,
    loss_chart,
    reliability_chart,
    score_chart,
    to_log10_odds,
)
from training.reporting.gallery import ReadAndPredict, draw_card
from training.reporting.html_page import embed_json, read_script, render
from training.reporting.operating_points import OperatingPointTable, calibrate_command
from training.reporting.summary import (
    describe,
    describe_reliability,
    list_doubts,
    list_remarks,
    list_split_warnings,
)
from training.reporting.threshold_slider import count_at, full_recall_threshold, make_slider

PICTURE_PX = {60: 512, 300: 256}
"""Long side of a picture for up to this number of errors and images for review, to limit the file size."""

MIN_PICTURE_PX = 160

NO_POINTS = OperatingPointTable()

CORRECT_SHOWN = 6
MAX_REVIEWS_SHOWN = 60
"""Photographs for review with pictures, evenly chosen: after few steps most photographs are for review."""

NEAR_SHOWN = 4
"""Near misses on each side of the threshold."""


def write_report(
    path: Path,
    *,
    title: str,
    facts: Mapping[str, str],
    evaluation: Evaluation,
    rating: Rating | None = None,
    points: OperatingPointTable = NO_POINTS,
    show: ReadAndPredict,
    history: Sequence[Mapping[str, Any]] | None = None,
    warnings: Sequence[str] = (),
) -> None:
    """Writes `report.html`, atomically, into the folder of the run.

    Args:
        path: The file to write.
        title: Name of the run.
        facts: Properties to list: model, data set, split, thresholds.
        evaluation: What is reported.
        rating: The rating of the model, the first lines of the page.
        points: Operating points, beside the threshold slider.
        show: Called once per pictured image.
        history: Training log; records without `stage`, `step` and a finite `loss` are ignored.
        warnings: Sentences at the top, such as those of the choice of thresholds.

    Raises:
        OSError: If the folder is missing or not writable.
    """
    metrics, results = evaluation.metrics, evaluation.results
    slider = make_slider(results, evaluation.classes, metrics.threshold, metrics.review_threshold)
    script, script_digest = read_script("threshold.js")
    text = render(
        "report.html.j2",
        title=title,
        facts=facts,
        warnings=[*list_split_warnings(results), *warnings],
        evaluation=evaluation,
        metrics=metrics,
        rating=rating,
        headline=describe(evaluation),
        remarks=list_remarks(evaluation),
        doubts=list_doubts(metrics),
        false_negative_rate=_rate(metrics, "false_negative_rate"),
        false_positive_rate=_rate(metrics, "false_positive_rate"),
        review_rate=f": {format_percent(metrics.reviews / metrics.images)}" if metrics.reviews else "",
        points=points,
        calibrate=calibrate_command(path.parent),
        slider=slider,
        slider_data=embed_json(slider.data) if slider else None,
        script=script,
        script_digest=script_digest,
        counts=count_at(results, metrics.threshold),
        charts=_score_charts(evaluation),
        reliability=describe_reliability(metrics, evaluation.defect_rate),
        reliability_charts=_reliability_charts(evaluation),
        losses=_loss_charts(history or ()),
        **_picture(evaluation, show),
    )
    write_text_atomic(path, text)


def _picture(evaluation: Evaluation, show: ReadAndPredict) -> dict[str, Any]:
    """The cards of the gallery, and the index of each result."""
    errors, reviews = evaluation.errors(), evaluation.reviews()
    near = choose_near_threshold(evaluation.results)
    chosen = {result.name for result in near}
    correct = _choose_correct([result for result in evaluation.results if result.name not in chosen])
    shown_reviews = pick_evenly(reviews, MAX_REVIEWS_SHOWN)
    pictured = len(errors) + len(shown_reviews)
    side = next((side for most, side in PICTURE_PX.items() if pictured <= most), MIN_PICTURE_PX)
    shown = {
        "error_cards": errors,
        "review_cards": shown_reviews,
        "near_cards": near,
        "correct_cards": correct,
    }
    cards = {kind: [draw_card(each, *show(each.name), side) for each in own] for kind, own in shown.items()}
    places = {result.name: place for place, result in enumerate(evaluation.results)}
    return {**cards, "errors": errors, "places": places}


def _rate(metrics: Metrics, name: str) -> str:
    """A rate in percent with its interval."""
    value, interval = getattr(metrics, name), metrics.intervals.get(name)
    if value is None:
        return ""
    bracket = f" ({100 * interval.low:.0f}–{format_percent(interval.high)})" if interval else ""
    return f": {format_percent(value)}{bracket}"


def _reliability_charts(evaluation: Evaluation) -> list[tuple[str, Markup]]:
    reliability = evaluation.reliability()
    if reliability is None:
        return []
    return [("Reliability", reliability_chart([reliability], evaluation.reliability(calibrated=False)))]


def _score_charts(evaluation: Evaluation) -> list[tuple[str, Markup]]:
    results, metrics = evaluation.results, evaluation.metrics
    if not results:
        return []
    images, threshold = LabelledScores.from_results(results), metrics.threshold
    scores = score_chart(images, threshold, full_recall_threshold(results), metrics.review_threshold)
    return [("Scores", scores), *curve_charts([images], threshold)]


def _loss_charts(history: Sequence[Mapping[str, Any]]) -> list[tuple[str, Markup]]:
    """Stage and SVG of its loss, in the order of the log."""
    stages: dict[str, list[tuple[int, float]]] = {}
    for record in history:
        loss = record.get("loss")
        if isinstance(loss, int | float) and np.isfinite(loss) and "stage" in record and "step" in record:
            stages.setdefault(str(record["stage"]), []).append((int(record["step"]), float(loss)))
    return [(stage, loss_chart(*zip(*points, strict=True))) for stage, points in stages.items()]


def choose_near_threshold(results: Sequence[PhotographResult]) -> list[PhotographResult]:
    """Returns the correct results nearest to their threshold in log-odds, defective ones first."""
    right = [result for result in results if result.outcome == "correct"]

    def margin(result: PhotographResult) -> tuple[float, str]:
        limit = result.threshold if result.truth else result.lowest_threshold
        return float(abs(to_log10_odds(result.score) - to_log10_odds(limit))), result.name

    ranked = sorted(right, key=margin)
    hits = [result for result in ranked if result.truth][:NEAR_SHOWN]
    return hits + [result for result in ranked if not result.truth][:NEAR_SHOWN]


def _choose_correct(results: Sequence[PhotographResult]) -> list[PhotographResult]:
    """Correct detections, picked evenly from the least to the most certain."""
    hits = [result for result in results if result.truth and result.outcome == "correct"]
    return pick_evenly(sorted(hits, key=lambda result: result.score), CORRECT_SHOWN)
