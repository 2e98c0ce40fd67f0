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
from training.reporting.charts import (
    LabelledScores,
    loss_chart,
    precision_recall_chart,
    reliability_chart,
    roc_chart,
    score_chart,
    to_odds,
)
from training.reporting.gallery import Card, ReadAndPredict, draw_cards
from training.reporting.html_page import embed_json, read_script, render
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

CORRECT_SHOWN = 6
NEAR_SHOWN = 4
"""Near misses on each side of the threshold."""


def write_report(
    path: Path,
    *,
    title: str,
    facts: Mapping[str, str],
    evaluation: Evaluation,
    show: ReadAndPredict,
    history: Sequence[Mapping[str, Any]] | None = None,
    warnings: Sequence[str] = (),
) -> None:
    """Writes `report.html`, atomically.

    It contains a summary in sentences, metrics with intervals, score histograms and curves with a threshold
    slider, calibration, pictures of every error and every image for review, of near misses and of some
    correct detections, tables of classes and region sizes, and the training losses.

    Args:
        path: The file to write.
        title: Name of the run.
        facts: Properties to list: model, data set, split, thresholds.
        evaluation: Results and metrics.
        show: Returns image and prediction by name; called once per pictured image.
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
        headline=describe(evaluation),
        remarks=list_remarks(evaluation),
        doubts=list_doubts(metrics),
        false_negative_rate=_rate(metrics, "false_negative_rate"),
        false_positive_rate=_rate(metrics, "false_positive_rate"),
        review_rate=f": {format_percent(metrics.reviews / metrics.images)}" if metrics.reviews else "",
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
    near = choose_near(evaluation.results)
    chosen = {result.name for result in near}
    correct = _choose_correct([result for result in evaluation.results if result.name not in chosen])
    side = picture_side(len(errors) + len(reviews))
    cards: dict[str, list[Card]] = {
        "error_cards": draw_cards(errors, show, side),
        "review_cards": draw_cards(reviews, show, side),
        "near_cards": draw_cards(near, show, side),
        "correct_cards": draw_cards(correct, show, side),
    }
    places = {result.name: place for place, result in enumerate(evaluation.results)}
    return {**cards, "errors": errors, "places": places}


def picture_side(cards: int) -> int:
    """Returns the long side of the pictures for this number of errors and images for review, px."""
    return next((side for most, side in PICTURE_PX.items() if cards <= most), MIN_PICTURE_PX)


def _rate(metrics: Metrics, name: str) -> str:
    """A rate in percent with its interval."""
    value, interval = getattr(metrics, name), metrics.intervals.get(name)
    if value is None:
        return ""
    bracket = f" ({100 * interval.low:.0f}–{format_percent(interval.high)})" if interval else ""
    return f": {format_percent(value)}{bracket}"


def _reliability_charts(evaluation: Evaluation) -> list[tuple[str, Markup]]:
    found = evaluation.reliability()
    if found is None:
        return []
    return [("Reliability", Markup(reliability_chart([found], evaluation.reliability(calibrated=False))))]


def _score_charts(evaluation: Evaluation) -> list[tuple[str, Markup]]:
    """Title and SVG of each chart that is defined for these images."""
    results, metrics = evaluation.results, evaluation.metrics
    if not results:
        return []
    images, threshold = LabelledScores.from_results(results), metrics.threshold
    scores = score_chart(images, threshold, full_recall_threshold(results), metrics.review_threshold)
    charts = [("Scores", scores)]
    if images.has_both:
        charts.append(("Precision and recall", precision_recall_chart([images], threshold)))
        charts.append(("ROC", roc_chart([images], threshold)))
    return [(title, Markup(svg)) for title, svg in charts]


def _loss_charts(history: Sequence[Mapping[str, Any]]) -> list[tuple[str, Markup]]:
    """Stage and SVG of its loss, in the order of the log."""
    stages: dict[str, list[tuple[int, float]]] = {}
    for record in history:
        loss = record.get("loss")
        if isinstance(loss, int | float) and np.isfinite(loss) and "stage" in record and "step" in record:
            stages.setdefault(str(record["stage"]), []).append((int(record["step"]), float(loss)))
    return [
        (stage, Markup(loss_chart([step for step, _ in points], [loss for _, loss in points])))
        for stage, points in stages.items()
    ]


def choose_near(results: Sequence[PhotographResult]) -> list[PhotographResult]:
    """Returns the correct results nearest to their threshold in log-odds, defective ones first."""
    right = [result for result in results if result.outcome == "correct"]
    limits = {result.name: result.threshold if result.truth else result.lowest_threshold for result in right}
    margin = {
        result.name: float(abs(to_odds(result.score) - to_odds(limits[result.name]))) for result in right
    }
    ranked = sorted(right, key=lambda result: (margin[result.name], result.name))
    hits = [result for result in ranked if result.truth][:NEAR_SHOWN]
    return hits + [result for result in ranked if not result.truth][:NEAR_SHOWN]


def _choose_correct(results: Sequence[PhotographResult]) -> list[PhotographResult]:
    """Correct detections, picked evenly from the least to the most certain."""
    hits = sorted(
        (result for result in results if result.truth and result.outcome == "correct"),
        key=lambda result: result.score,
    )
    return pick_evenly(hits, CORRECT_SHOWN)
