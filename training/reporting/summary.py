"""The result in plain words: what the model gets right, where it fails, and whether one can tell."""

from collections.abc import Sequence

from training.formatting import (
    count_of,
    format_figure,
    format_percent,
    format_rate,
    format_score,
)
from training.metrics.evaluation import Evaluation
from training.metrics.metrics import ClassMetrics, Metrics
from training.metrics.photograph_results import PhotographResult
from training.metrics.regions import FOUND_OVERLAP, RegionClasses, RegionSize
from training.reporting.threshold_slider import full_recall_threshold

WIDE_INTERVAL = 0.1
"""Width of a 95 % interval from which on the figure tells a good model from a fair one no longer."""

CLEAR_DIFFERENCE = 0.1
"""By which a class or size must lag behind the rest to be named."""

FEW_TO_CALIBRATE = 50
"""Photographs of one kind below which the calibration error is mostly chance."""

MANY_DEFECTIVE = 200
"""Defective photographs from which on none missed speaks for itself."""


def describe(evaluation: Evaluation) -> str:
    """Returns the result in one sentence."""
    metrics = evaluation.metrics
    if not metrics.images:
        return "No images were evaluated."
    wrong, held = len(evaluation.errors()), metrics.reviews
    left = f"; {held} {'is' if held == 1 else 'are'} left for review" if held else ""
    if not wrong and not left:
        return f"All {metrics.images} images are labelled right."
    if not wrong:
        return f"None of {metrics.images} images is labelled wrong{left}."
    kinds = (
        (metrics.false_negatives, "missed defect", None),
        (metrics.false_positives, "false alarm", None),
        (wrong - metrics.errors, "wrong class", "wrong classes"),
    )
    parts = [count_of(*kind) for kind in kinds if kind[0]]
    verb = "is" if wrong == 1 else "are"
    return f"{wrong} of {metrics.images} images {verb} labelled wrong: {', '.join(parts)}{left}."


def list_remarks(evaluation: Evaluation) -> list[str]:
    """Lists what else to know, a few sentences, the plainest first."""
    metrics = evaluation.metrics
    if not metrics.images:
        return []
    return [
        *_describe_decisions(metrics),
        *_describe_reviews(metrics),
        *_describe_classes(metrics.classes),
        *_describe_masks(metrics),
        *_describe_sizes(metrics.region_sizes),
        *_describe_region_classes(metrics.region_classes),
        *_describe_full_recall(evaluation),
    ]


def list_split_warnings(results: Sequence[PhotographResult]) -> list[str]:
    """Says if the photographs are those that the model or its thresholds come from."""
    splits = {result.split for result in results}
    if "train" in splits:
        return ["The model was trained on these photographs: the figures say nothing about others."]
    if "val" in splits:
        return [
            "The thresholds were chosen on these photographs: errors and pixel figures look better here than "
            "they will elsewhere. Evaluate on 'test'."
        ]
    return []


def list_doubts(metrics: Metrics) -> list[str]:
    """Says why the photographs may be too few to tell."""
    if not metrics.images:
        return []
    if not metrics.good or not metrics.defective:
        lacking = "good" if metrics.defective else "defective"
        return [
            f"There is no {lacking} photograph: how well the two are told apart cannot be measured. "
            "Evaluate a split that holds both."
        ]
    return [*_doubt_precision(metrics), *_doubt_rate(metrics)]


def _describe_decisions(metrics: Metrics) -> list[str]:
    sentences = []
    if metrics.defective:
        found = metrics.defective - metrics.false_negatives - metrics.defective_reviews
        sentences.append(f"The model finds {found} of {count_of(metrics.defective, 'defective photograph')}")
    if metrics.good:
        passed = metrics.good - metrics.false_positives - (metrics.reviews - metrics.defective_reviews)
        sentences.append(
            f"{'it' if sentences else 'The model'} lets {passed} of {metrics.good} good ones pass"
        )
    return [f"{' and '.join(sentences)}."]


def _describe_reviews(metrics: Metrics) -> list[str]:
    if not metrics.reviews and metrics.review_threshold is None:
        return []
    photographs = count_of(metrics.images, "photograph")
    if not metrics.reviews:
        return [f"It leaves none of {photographs} for review."]
    defective = metrics.defective_reviews or "none"
    return [f"It leaves {metrics.reviews} of {photographs} for review, {defective} of them defective."]


def describe_reliability(metrics: Metrics, defect_rate: float | None) -> str:
    """Says how far the score is a probability, and for which share of defective photographs.

    Args:
        metrics: The figures of some photographs.
        defect_rate: Share for which their scores are probabilities; None where they are none.
    """
    claim = (
        "The score is the network's own, not calibrated: it tells which photograph is the more likely to be "
        "defective, but is no probability."
        if defect_rate is None
        else f"The score is calibrated to be a probability where {format_rate(defect_rate)} of the "
        "photographs are defective: of 100 with a score of 0.2, 20 should be defective."
    )
    if metrics.calibration_error is None:
        lacking = "good" if metrics.defective else "defective"
        return f"{claim} Whether it is one cannot be measured here: there is no {lacking} photograph."
    found = (
        f"Here score and share of defective photographs lie {metrics.calibration_error:.3f} apart on average"
    )
    rough = _doubt_reliability(metrics)
    if defect_rate is None or metrics.calibration_error_before is None:
        return f"{claim} {found}.{rough}"
    return (
        f"{claim} {found}, {metrics.calibration_error_before:.3f} without calibration; these photographs are "
        f"weighted as if that share of them were defective.{rough}"
    )


def _doubt_reliability(metrics: Metrics) -> str:
    fewer, kind = min((metrics.defective, "defective photograph"), (metrics.good, "good photograph"))
    return f" With {count_of(fewer, kind)} this is a rough figure." if fewer < FEW_TO_CALIBRATE else ""


def _describe_classes(classes: Sequence[ClassMetrics]) -> list[str]:
    """The class missed most often, and the one taken for another most often."""
    seen = [(each.false_negatives / each.images, each) for each in classes if each.images]
    if len(seen) < 2:
        return []
    sentences = []
    share, worst = max(seen, key=lambda pair: pair[0])
    if share - min(value for value, _ in seen) >= CLEAR_DIFFERENCE:
        sentences.append(
            f"It misses {worst.false_negatives} of {count_of(worst.images, 'photograph')} "
            f"of the class '{worst.name}', a larger share than of any other."
        )
    confused, most = max(((_confused(each), each) for _, each in seen), key=lambda pair: pair[0])
    if confused:
        found, are = _found(most), "is" if confused == 1 else "are"
        sentences.append(
            f"Of the {count_of(found, 'photograph')} of the class '{most.name}' that it finds, {confused} "
            f"{are} given another class; the table below tells which."
        )
    return sentences


def _confused(each: ClassMetrics) -> int:
    """Photographs of a class that are found but given another one."""
    return _found(each) - round((each.accuracy or 0) * each.images)


def _found(each: ClassMetrics) -> int:
    return each.images - each.false_negatives - each.reviews


def _describe_masks(metrics: Metrics) -> list[str]:
    sentences = []
    if metrics.pixels.f1 is not None:
        sentences.append(
            f"Of the defect pixels {format_percent(metrics.pixels.recall or 0)} are marked, and "
            f"{format_percent(metrics.pixels.precision or 0)} of the marked pixels are defect "
            f"(pixel F1 {format_figure(metrics.pixels.f1)})."
        )
    unknown = metrics.images - metrics.pixel_images
    if unknown:
        have, are = ("has", "is") if unknown == 1 else ("have", "are")
        sentences.append(
            f"{count_of(unknown, 'defective photograph')} {have} a label or boxes only, no drawn defect: "
            f"{'it' if unknown == 1 else 'they'} {are} not counted in any figure of pixels or regions."
        )
    return sentences


def _describe_sizes(sizes: Sequence[RegionSize]) -> list[str]:
    shares = [(size.found_share, size) for size in sizes if size.found_share is not None]
    if not shares:
        return []
    share, worst = min(shares, key=lambda pair: pair[0])
    if share == 1:
        return [f"Every true region is found: at least {format_percent(FOUND_OVERLAP)} of it is marked."]
    lagging = max(value for value, _ in shares) - share >= CLEAR_DIFFERENCE
    tail = ", a smaller share than of any other size" if lagging else ""
    return [f"Of the true regions {name_size(worst)} it finds {worst.found} of {worst.regions}{tail}."]


def _describe_region_classes(regions: RegionClasses | None) -> list[str]:
    if regions is None or not regions.found:
        return []
    return [f"Of {count_of(regions.found, 'found region')} {regions.right} got their class."]


def name_size(size: RegionSize) -> str:
    """Returns the areas of a size bin in words."""
    if size.below_px is None:
        return f"from {size.from_px} px"
    return (
        f"below {size.below_px} px" if size.from_px <= 1 else f"of {size.from_px} to {size.below_px - 1} px"
    )


def _describe_full_recall(evaluation: Evaluation) -> list[str]:
    alarms, lowest = evaluation.metrics.fp_at_full_recall, full_recall_threshold(evaluation.results)
    if alarms is None or lowest is None or not evaluation.metrics.false_negatives:
        return []
    metrics = evaluation.metrics
    if any(result.review_threshold is not None for result in evaluation.results):
        return [
            f"To miss none of these defects review would have to begin at {format_score(lowest)}; "
            f"{alarms} of {count_of(metrics.good, 'good photograph')} score as high."
        ]
    several = "" if metrics.threshold is not None else ", one for all runs"
    return [
        f"To miss none of these defects the threshold would have to be {format_score(lowest)}{several}, with "
        f"{count_of(alarms, 'false alarm')} among {metrics.good} good photographs."
    ]


def _doubt_precision(metrics: Metrics) -> list[str]:
    if "average_precision" not in metrics.intervals:
        return []
    interval = metrics.intervals["average_precision"]
    if interval is None:
        return [
            "The items are too few for a 95 % interval: take every figure here for a first impression, "
            "and measure on more."
        ]
    if interval.high - interval.low < WIDE_INTERVAL:
        return []
    return [
        f"The test set is too small to tell how good the model is: with other photographs of the same kind "
        f"its average precision may as well be anywhere from {interval.low:.2f} to {interval.high:.2f}. "
        "Measure on more defective items, for instance on all folds joined; hold two models against each "
        "other with 'python -m training compare', not by this figure."
    ]


def _doubt_rate(metrics: Metrics) -> list[str]:
    interval = metrics.intervals.get("false_negative_rate")
    if metrics.false_negatives or interval is None or metrics.defective >= MANY_DEFECTIVE:
        return []
    return [
        f"No miss among {count_of(metrics.defective, 'defective photograph')} does not prove that it never "
        f"misses: its rate of misses may still be up to {format_percent(interval.high)} (95 % interval)."
    ]
