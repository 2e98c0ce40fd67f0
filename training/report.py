"""The report of an evaluation: one HTML file that needs nothing beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from segdec.files import write_text_atomic
from segdec.overlay import PREDICTED, TRUTH
from training.charts import loss_chart, precision_recall_chart, roc_chart, score_chart
from training.evaluation import Evaluation, Row
from training.gallery import Show, make_cards
from training.metrics import Metrics

PICTURE_PX = 512
"""Long side of a picture in the gallery."""

SMALL_PICTURE_PX = 256
"""Long side when there are more than `MANY_ERRORS`, so that the file stays one a browser opens."""

Tile = tuple[str, str, str]
"""Name, figure and explanation."""

MANY_ERRORS = 60
CORRECT_SHOWN = 6


def write_report(
    path: Path,
    *,
    title: str,
    facts: Mapping[str, str],
    evaluation: Evaluation,
    show: Show,
    history: Sequence[Mapping[str, Any]] | None = None,
    warnings: Sequence[str] = (),
) -> None:
    """Writes `report.html`, atomically.

    It shows the figures, precision-recall and ROC curves, score histograms, every error with its
    pictures, a few correct detections, the confusion of more than two classes and the training
    losses. Pictures and styles lie inside the file.

    Args:
        path: The file to write.
        title: Name of the run.
        facts: What the reader should know, in order: model, data set, split, thresholds and where
            they were chosen.
        evaluation: The rows and figures.
        show: Gives photograph and prediction by name; called once for each one pictured.
        history: Training log: mappings with `stage`, `step` and `loss`; others are passed over.
        warnings: Sentences to put on top, such as those of the threshold choice.

    Raises:
        OSError: The folder is missing or not writable.
    """
    errors = evaluation.errors()
    correct = _choose_correct(evaluation.rows)
    side = SMALL_PICTURE_PX if len(errors) > MANY_ERRORS else PICTURE_PX
    page = _environment().get_template("report.html.j2")
    text = page.render(
        title=title,
        facts=facts,
        warnings=warnings,
        evaluation=evaluation,
        metrics=evaluation.metrics,
        verdict=describe(evaluation),
        tiles={"Decision": _decision_tiles(evaluation.metrics), "Mask": _mask_tiles(evaluation.metrics)},
        charts=_score_charts(evaluation),
        losses=_loss_charts(history or ()),
        errors=errors,
        error_cards=make_cards(errors, show, side),
        correct_count=sum(row.truth != 0 and row.outcome == "correct" for row in evaluation.rows),
        correct_cards=make_cards(correct, show, PICTURE_PX),
    )
    write_text_atomic(path, text)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["score"] = format_score
    environment.globals["predicted_color"] = _css(PREDICTED)
    environment.globals["truth_color"] = _css(TRUTH)
    return environment


def _css(color: tuple[int, int, int]) -> str:
    return f"rgb{color}"


def format_figure(value: float | None) -> str:
    """A figure with three decimals, cut so that nothing short of 1 reads as 1; a dash for none."""
    if value is None:
        return "–"
    return f"{int(value * 1000) / 1000:.3f}" if value > 0.999 else f"{value:.3f}"


def format_score(value: float) -> str:
    """A score with three decimals, or enough to tell it from 0 and 1."""
    if 0 < value < 0.001:
        return f"{value:.0e}"
    if 0.999 < value < 1:
        return f"1 − {1 - value:.0e}"
    return f"{value:.3f}"


def describe(evaluation: Evaluation) -> str:
    """The result in one sentence."""
    metrics = evaluation.metrics
    if not metrics.images:
        return "No images were evaluated."
    wrong = len(evaluation.errors())
    if not wrong:
        return f"All {metrics.images} images are labelled right."
    parts = [
        _count(metrics.false_negatives, "missed defect"),
        _count(metrics.false_positives, "false alarm"),
        _count(wrong - metrics.errors, "wrong class", "wrong classes"),
    ]
    verb = "is" if wrong == 1 else "are"
    return f"{wrong} of {metrics.images} images {verb} labelled wrong: {', '.join(filter(None, parts))}."


def _count(number: int, word: str, plural: str | None = None) -> str:
    return f"{number} {word if number == 1 else plural or word + 's'}" if number else ""


def _decision_tiles(metrics: Metrics) -> list[Tile]:
    tiles = [
        ("Average precision", format_figure(metrics.average_precision), "of the image score, step-wise"),
        ("AUROC", format_figure(metrics.auroc), "of the image score"),
        ("False negatives", str(metrics.false_negatives), f"missed of {metrics.defective} defective"),
        ("False positives", str(metrics.false_positives), f"alarms of {metrics.good} good"),
        ("FP at FN = 0", _format_count(metrics.fp_at_no_miss), "alarms if no defect may be missed"),
    ]
    if len(metrics.confusion) > 2:
        accuracy = format_figure(metrics.label_accuracy)
        tiles.append(("Class accuracy", accuracy, "images with the right class"))
    return tiles


def _mask_tiles(metrics: Metrics) -> list[Tile]:
    pixels = metrics.pixels
    return [
        ("Pixel F1", format_figure(pixels.f1), f"pooled over {metrics.pixel_images} masks"),
        ("Pixel IoU", format_figure(pixels.iou), "at the mask threshold"),
        ("Pixel precision", format_figure(pixels.precision), "of predicted pixels, defect"),
        ("Pixel recall", format_figure(pixels.recall), "of defect pixels, found"),
    ]


def _format_count(value: int | None) -> str:
    return "–" if value is None else str(value)


def _score_charts(evaluation: Evaluation) -> list[tuple[str, Markup]]:
    """Title and SVG of the charts these images allow."""
    if not evaluation.rows:
        return []
    defective = np.array([row.truth != 0 for row in evaluation.rows])
    scores = np.array([row.score for row in evaluation.rows], np.float64)
    threshold = evaluation.metrics.threshold
    charts = [("Scores", score_chart(defective, scores, threshold))]
    if defective.any() and not defective.all():
        charts.append(("Precision and recall", precision_recall_chart(defective, scores, threshold)))
        charts.append(("ROC", roc_chart(defective, scores, threshold)))
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


def _choose_correct(rows: Sequence[Row]) -> list[Row]:
    """Correct detections spread evenly from the least to the most certain."""
    hits = sorted((row for row in rows if row.truth and row.outcome == "correct"), key=lambda row: row.score)
    if len(hits) <= CORRECT_SHOWN:
        return hits
    places = np.linspace(0, len(hits) - 1, CORRECT_SHOWN).round().astype(int)
    return [hits[place] for place in places]
