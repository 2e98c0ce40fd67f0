"""All metrics of an evaluation. Undefined ones, such as the AP without a defective image, are None."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from scipy.special import expit

from segdec.runtime.identifiers import REVIEW
from training.metrics.calibration import measure_reliability
from training.metrics.classification import (
    auroc,
    average_precision,
    average_precision_trapezoid,
    count_errors,
    false_positives_at_full_recall,
)
from training.metrics.intervals import Interval, bootstrap_intervals
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_counts import PixelCounts, ratio
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.regions import RegionClasses, RegionSize, count_region_classes, measure_sizes

NESTED = ("confusion", "pixels", "classes", "region_sizes", "region_classes", "intervals")
RATES = ("errors", "false_negative_rate", "false_positive_rate")


@dataclass(frozen=True)
class ClassMetrics:
    """The metrics of one defect class.

    Attributes:
        average_precision: Step-wise AP of the image score, against the good images.
        false_negatives: Images of the class that are called good.
        recall: Share of its images at or above the threshold, with any predicted class.
        accuracy: Share of them with the correct class.
        pixels: Pooled over its `pixel_images`, whose defect pixels are known; without good images.
    """

    name: str
    images: int
    average_precision: float | None
    false_negatives: int
    reviews: int
    recall: float | None
    accuracy: float | None
    pixels: PixelCounts
    pixel_images: int

    def to_dict(self) -> dict[str, Any]:
        """Returns all metrics, ready for JSON."""
        return _flatten_pixels({name: getattr(self, name) for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class Metrics:
    """The metrics of one evaluation; undefined ones are None.

    Attributes:
        threshold: Image score from which an image is defective; None for several runs with different ones.
        review_threshold: Image score from which an image is at least for review; None without review, and
            for several runs with different ones.
        false_positives: Good images at or above the threshold.
        false_negatives: Defective images that are called good.
        reviews: Images for review; `defective_reviews` of them are defective.
        fp_at_full_recall: False positives at the highest threshold without a missed defect.
        label_accuracy: Share of the images with the correct class.
        confusion: Images by true class (row) and predicted class (column); a last column for review, if any.
        calibration_error: Expected calibration error of the score, `brier` its Brier score; images are
            weighted to the defect rate that the score is calibrated for. `…_before`: without calibration.
        pixels: Pooled over the `pixel_images` whose defect pixels are known, at the mask threshold.
        classes: The metrics of each defect class.
        region_sizes: The true regions by size, the smallest first.
        region_label_accuracy: Share of the found true regions with the correct class; None if the model has
            one mask for all classes.
        region_classes: Confusion of region classes; None likewise.
        intervals: 95 % intervals of `INTERVAL_METRICS`, by name; None with too few images. Empty if not
            requested.
    """

    images: int
    good: int
    defective: int
    threshold: float | None
    review_threshold: float | None
    average_precision: float | None
    average_precision_trapezoid: float | None
    auroc: float | None
    false_positives: int
    false_negatives: int
    reviews: int
    defective_reviews: int
    fp_at_full_recall: int | None
    label_accuracy: float | None
    confusion: tuple[tuple[int, ...], ...]
    pixels: PixelCounts
    pixel_images: int
    pixel_average_precision: float | None
    aupro: float | None
    calibration_error: float | None
    brier: float | None
    calibration_error_before: float | None
    brier_before: float | None
    classes: tuple[ClassMetrics, ...]
    region_sizes: tuple[RegionSize, ...]
    region_label_accuracy: float | None = None
    region_classes: RegionClasses | None = None
    intervals: Mapping[str, Interval | None] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        """False positives and false negatives together."""
        return self.false_positives + self.false_negatives

    @property
    def false_negative_rate(self) -> float | None:
        """Share of the defective images that are called good."""
        return ratio(self.false_negatives, self.defective)

    @property
    def false_positive_rate(self) -> float | None:
        """Share of the good images that are called defective."""
        return ratio(self.false_positives, self.good)

    def scalars(self) -> dict[str, float | int | None]:
        """Returns all scalar metrics, by name."""
        single = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in NESTED}
        rates = {name: getattr(self, name) for name in RATES}
        return {**_flatten_pixels({**single, "pixels": self.pixels}), **rates}

    def to_dict(self) -> dict[str, Any]:
        """Returns all metrics, ready for JSON."""
        return {
            **self.scalars(),
            "confusion": self.confusion,
            "classes": [each.to_dict() for each in self.classes],
            "region_sizes": [size.to_dict() for size in self.region_sizes],
            "region_confusion": self.region_classes and self.region_classes.confusion,
            "intervals": {name: each and asdict(each) for name, each in self.intervals.items()},
        }


def _flatten_pixels(metrics: dict[str, Any]) -> dict[str, Any]:
    pixels = metrics.pop("pixels")
    return {
        **metrics,
        **{f"pixel_{name}": getattr(pixels, name) for name in ("iou", "f1", "precision", "recall")},
    }


def compute_metrics(
    results: Sequence[PhotographResult],
    classes: Sequence[str],
    mask_scores: PixelHistogram | None = None,
    *,
    threshold: float | None = None,
    defect_rate: float | None = None,
    resamples: int = 0,
) -> Metrics:
    """Computes all metrics of N images, N ≥ 0.

    Args:
        results: Result of each image, with its own thresholds.
        classes: Names of the model's classes, the good one first.
        mask_scores: None for no metrics over all mask thresholds.
        threshold: Threshold to report if there are no results.
        defect_rate: Defect rate that scores are calibrated for; None for that of the images.
        resamples: Number of bootstrap resamples; 0 for no intervals.
    """
    truth, scores = [result.truth for result in results], [result.score for result in results]
    defective = sum(label != 0 for label in truth)
    thresholds = [result.threshold for result in results]
    review_limits = {result.review_threshold for result in results}
    false_positives, _ = count_errors(truth, scores, thresholds)
    _, false_negatives = count_errors(truth, scores, [result.lowest_threshold for result in results])
    reviewed = [result for result in results if result.outcome == "review"]
    confusion = _confuse(results, classes)
    after = measure_reliability(truth, scores, defect_rate)
    before = measure_reliability(truth, expit([result.log_odds for result in results]), defect_rate)
    known = [result.pixels for result in results if result.pixels is not None]
    overlaps = [overlap for result in results for overlap in result.overlaps]
    false_regions = (number for result in results for number in result.false_regions)
    region_classes = count_region_classes(overlaps, false_regions, len(classes))
    return Metrics(
        images=len(results),
        good=len(results) - defective,
        defective=defective,
        threshold=thresholds[0] if len(set(thresholds)) == 1 else threshold,
        review_threshold=review_limits.pop() if len(review_limits) == 1 else None,
        average_precision=average_precision(truth, scores),
        average_precision_trapezoid=average_precision_trapezoid(truth, scores),
        auroc=auroc(truth, scores),
        false_positives=false_positives,
        false_negatives=false_negatives,
        reviews=len(reviewed),
        defective_reviews=sum(result.truth != 0 for result in reviewed),
        fp_at_full_recall=false_positives_at_full_recall(truth, scores),
        label_accuracy=ratio(sum(row[place] for place, row in enumerate(confusion)), len(results)),
        confusion=confusion,
        pixels=sum(known, PixelCounts()),
        pixel_images=len(known),
        pixel_average_precision=mask_scores.average_precision() if mask_scores else None,
        aupro=mask_scores.aupro() if mask_scores else None,
        calibration_error=after.expected_error if after else None,
        brier=after.brier if after else None,
        calibration_error_before=before.expected_error if before else None,
        brier_before=before.brier if before else None,
        classes=tuple(_measure_class(results, number, name) for number, name in enumerate(classes) if number),
        region_sizes=measure_sizes(overlaps),
        region_label_accuracy=region_classes.accuracy if region_classes else None,
        region_classes=region_classes,
        intervals=bootstrap_intervals([results], resamples=resamples) if resamples else {},
    )


def _confuse(results: Sequence[PhotographResult], classes: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    counts = Counter((result.true_label, result.predicted_label) for result in results)
    columns = [*classes, *([REVIEW] if any(label == REVIEW for _, label in counts) else [])]
    return tuple(tuple(counts[truth, predicted] for predicted in columns) for truth in classes)


def _measure_class(results: Sequence[PhotographResult], number: int, name: str) -> ClassMetrics:
    own = [result for result in results if result.truth == number]
    against_good = [result for result in results if result.truth in (0, number)]
    known = [result.pixels for result in own if result.pixels is not None]
    return ClassMetrics(
        name=name,
        images=len(own),
        average_precision=average_precision(
            [result.truth for result in against_good], [result.score for result in against_good]
        ),
        false_negatives=sum(result.passed for result in own),
        reviews=sum(result.outcome == "review" for result in own),
        recall=ratio(sum(result.detected for result in own), len(own)),
        accuracy=ratio(sum(result.predicted_label == name for result in own), len(own)),
        pixels=sum(known, PixelCounts()),
        pixel_images=len(known),
    )
