"""The result of an evaluation in sentences: what the model gets right, where it fails, how sure this is."""

from collections.abc import Iterator, Sequence

from segdec.runtime.counts import count_of
from training.formatting import format_figure, format_line, format_percent, format_rate, format_score
from training.metrics.evaluation import Evaluation
from training.metrics.metrics import ClassMetrics, Metrics
from training.metrics.photograph_results import PhotographResult
from training.metrics.rating import Rating
from training.metrics.regions import FOUND_OVERLAP, RegionSize
from training.reporting.threshold_slider import full_recall_threshold

WIDE_INTERVAL = 0.1
"""Width of a 95 % interval of AP that is too wide to rate the model."""

CLEAR_DIFFERENCE = 0.1
"""Minimum difference of a class or size from the best one to be mentioned."""

FEW_TO_CALIBRATE = 50
"""Number of images of one kind below which the calibration error is rough."""

MANY_DEFECTIVE = 200
"""Number of defective images from which no miss needs no comment."""


def describe(evaluation: Evaluation) -> str:
    """Returns the result in one sentence."""
    metrics = evaluation.metrics
    if not metrics.images:
        return "No images were evaluated."
    wrong, held = len(evaluation.errors()), metrics.reviews
    left = f"; {held} {'is' if held == 1 else 'are'} left for review" if held else ""
    if not wrong and not left:
        return f"All {metrics.images} images are labelled correctly."
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
    """Returns further sentences about the result."""
    metrics, regions = evaluation.metrics, evaluation.metrics.region_classes
    if not metrics.images:
        return []
    right = []
    if regions is not None and regions.found:
        right = [f"Of {count_of(regions.found, 'found region')} {regions.right} have the correct class."]
    return [
        *_describe_decisions(metrics),
        *_describe_classes(metrics.classes),
        *_describe_masks(metrics),
        *_describe_sizes(metrics.region_sizes),
        *right,
        *_describe_full_recall(evaluation),
    ]


def describe_rating(rating: Rating) -> Iterator[str]:
    """Yields the rating and the advice as lines for the terminal."""
    yield format_line("rating", f"{rating.level}: {rating.reason}")
    for number, sentence in enumerate(rating.advice):
        yield format_line("" if number else "advice", sentence)


def list_split_warnings(results: Sequence[PhotographResult]) -> list[str]:
    """Returns a warning if the images were used to train the model or to choose its thresholds."""
    splits = {result.split for result in results}
    if "train" in splits:
        return ["The model was trained on these photographs: the metrics do not apply to new ones."]
    if any(split.startswith("fold_") for split in splits):
        return [
            "Each photograph was scored by a network built without it. The thresholds were chosen on these "
            "scores: errors are slightly fewer here than on new photographs."
        ]
    if "val" in splits:
        return [
            "The thresholds were chosen on these photographs: errors and pixel metrics are better here than "
            "on new ones. Evaluate on 'test'."
        ]
    return []


def list_doubts(metrics: Metrics) -> list[str]:
    """Returns sentences about metrics that are uncertain because there are too few images."""
    if not metrics.images:
        return []
    if not metrics.good or not metrics.defective:
        lacking = "good" if metrics.defective else "defective"
        return [
            f"There is no {lacking} photograph: how well the model separates good and defective ones cannot "
            "be measured. Evaluate a split with both."
        ]
    return [*_doubt_precision(metrics), *_doubt_rate(metrics)]


def _describe_decisions(metrics: Metrics) -> Iterator[str]:
    sentences = []
    if metrics.defective:
        hits = metrics.defective - metrics.false_negatives - metrics.defective_reviews
        sentences.append(f"The model finds {hits} of {count_of(metrics.defective, 'defective photograph')}")
    if metrics.good:
        passed = metrics.good - metrics.false_positives - (metrics.reviews - metrics.defective_reviews)
        sentences.append(f"{'' if sentences else 'The model '}passes {passed} of {metrics.good} good ones")
    yield f"{' and '.join(sentences)}."
    photographs, defective = count_of(metrics.images, "photograph"), metrics.defective_reviews or "none"
    if metrics.reviews:
        yield f"It leaves {metrics.reviews} of {photographs} for review, {defective} of them defective."
    elif metrics.review_threshold is not None:
        yield f"It leaves none of {photographs} for review."


def describe_reliability(metrics: Metrics, defect_rate: float | None) -> str:
    """Describes how well the score is calibrated; `defect_rate` is None if it is not calibrated."""
    claim = (
        "The score is not calibrated: it ranks photographs by how likely they are defective, but it is not a "
        "probability."
        if defect_rate is None
        else f"The score is calibrated to be a probability where {format_rate(defect_rate)} of the "
        "photographs are defective: of 100 with a score of 0.2, 20 should be defective."
    )
    if metrics.calibration_error is None:
        lacking = "good" if metrics.defective else "defective"
        return f"{claim} This cannot be measured here: there is no {lacking} photograph."
    error, before = metrics.calibration_error, metrics.calibration_error_before
    text = f"{claim} Here score and share of defective photographs differ by {error:.3f} on average"
    if defect_rate is not None and before is not None:
        text += f", {before:.3f} without calibration; these photographs are weighted as if that share of them"
        text += " were defective"
    fewer, kind = min((metrics.defective, "defective photograph"), (metrics.good, "good photograph"))
    rough = f" With {count_of(fewer, kind)} this value is rough." if fewer < FEW_TO_CALIBRATE else ""
    return f"{text}.{rough}"


def _describe_classes(classes: Sequence[ClassMetrics]) -> Iterator[str]:
    """The class that is missed most often, and the one that is confused most often."""
    seen = [(each.false_negatives / each.images, each) for each in classes if each.images]
    if len(seen) < 2:
        return
    share, worst = max(seen, key=lambda pair: pair[0])
    if share - min(value for value, _ in seen) >= CLEAR_DIFFERENCE:
        yield (
            f"It misses {worst.false_negatives} of {count_of(worst.images, 'photograph')} "
            f"of the class '{worst.name}', a larger share than of any other."
        )
    confused, most = max(((_confused(each), each) for _, each in seen), key=lambda pair: pair[0])
    if confused:
        detected, are = _found(most), "is" if confused == 1 else "are"
        yield (
            f"Of the {count_of(detected, 'photograph')} of the class '{most.name}' that it finds, {confused} "
            f"{are} given another class; see the table below."
        )


def _confused(each: ClassMetrics) -> int:
    """Images of a class that are found but given another class."""
    return _found(each) - round((each.accuracy or 0) * each.images)


def _found(each: ClassMetrics) -> int:
    return each.images - each.false_negatives - each.reviews


def _describe_masks(metrics: Metrics) -> Iterator[str]:
    if metrics.pixels.f1 is not None:
        yield (
            f"Of the defect pixels {format_percent(metrics.pixels.recall or 0)} are marked, and "
            f"{format_percent(metrics.pixels.precision or 0)} of the marked pixels are defect "
            f"(pixel F1 {format_figure(metrics.pixels.f1)}, intersection over union "
            f"{format_figure(metrics.pixels.iou)})."
        )
    unknown = metrics.images - metrics.pixel_images
    if unknown:
        have, they_are = ("has", "it is") if unknown == 1 else ("have", "they are")
        yield (
            f"{count_of(unknown, 'defective photograph')} {have} a label or boxes only, no mask: "
            f"{they_are} excluded from all metrics of pixels and regions."
        )


def _describe_sizes(sizes: Sequence[RegionSize]) -> Iterator[str]:
    shares = [(size.found_share, size) for size in sizes if size.found_share is not None]
    if not shares:
        return
    regions = sum(size.regions for size in sizes)
    outside = sum(size.regions * (size.mean_outside or 0) for size in sizes) / regions
    if outside >= FOUND_OVERLAP:
        marked = f"{format_percent(outside)} of the area without a defect"
        yield (
            f"In defective photographs the masks mark {marked}. "
            "They cover true regions by chance, so the number of found regions says nothing."
        )
        return
    share, worst = min(shares, key=lambda pair: pair[0])
    if share == 1:
        yield (
            f"Every true region is found: at least {format_percent(FOUND_OVERLAP)} of it is marked, beside "
            f"{format_rate(outside)} of the area without a defect."
        )
        return
    lagging = max(value for value, _ in shares) - share >= CLEAR_DIFFERENCE
    tail = ", a smaller share than of any other size" if lagging else ""
    yield f"Of the true regions {_name_size(worst)} it finds {worst.found} of {worst.regions}{tail}."


def _name_size(size: RegionSize) -> str:
    if size.below_px is None:
        return f"from {size.from_px} px"
    return (
        f"below {size.below_px} px" if size.from_px <= 1 else f"of {size.from_px} to {size.below_px - 1} px"
    )


def _describe_full_recall(evaluation: Evaluation) -> Iterator[str]:
    metrics, lowest = evaluation.metrics, full_recall_threshold(evaluation.results)
    if metrics.fp_at_full_recall is None or lowest is None or not metrics.false_negatives:
        return
    score, alarms = format_score(lowest), metrics.fp_at_full_recall
    if any(result.review_threshold is not None for result in evaluation.results):
        yield (
            f"To miss none of these defects, the review threshold would have to be {score}; "
            f"{alarms} of {count_of(metrics.good, 'good photograph')} score as high."
        )
        return
    several = "" if metrics.threshold is not None else ", one for all runs"
    yield (
        f"To miss none of these defects, the threshold would have to be {score}{several}, "
        f"with {count_of(alarms, 'false alarm')} among {metrics.good} good photographs."
    )


def _doubt_precision(metrics: Metrics) -> Iterator[str]:
    if "average_precision" not in metrics.intervals:
        return
    interval = metrics.intervals["average_precision"]
    if interval is None:
        yield (
            "There are too few items for a 95 % interval: all metrics are a first impression only. Evaluate "
            "on more items."
        )
    elif interval.high - interval.low >= WIDE_INTERVAL:
        yield (
            f"The test set is too small to rate the model: on other photographs of the same kind its average "
            f"precision may be anywhere from {interval.low:.2f} to {interval.high:.2f}. Evaluate on more "
            "defective items, for example on all folds joined; compare two models with "
            "'python -m training compare', not by this value."
        )


def _doubt_rate(metrics: Metrics) -> Iterator[str]:
    interval = metrics.intervals.get("false_negative_rate")
    if not metrics.false_negatives and interval is not None and metrics.defective < MANY_DEFECTIVE:
        yield (
            f"No miss among {count_of(metrics.defective, 'defective photograph')} does not prove that the "
            f"model never misses: its miss rate may be up to {format_percent(interval.high)} (95 % interval)."
        )
