"""Evaluation of a model on a split: one result per image, and the metrics of all."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from datasets.sample import DataSetItem, Sample, labels_of
from segdec.engines import Logits
from segdec.errors import DatasetError
from segdec.inference.postprocessing import Prediction
from segdec.predictor import Predictor
from segdec.runtime.cli import progress_bar
from segdec.runtime.counts import count_of
from training.data.reading_pool import ReadingPool
from training.metrics.calibration import Reliability, measure_reliability
from training.metrics.intervals import RESAMPLES
from training.metrics.metrics import Metrics, compute_metrics
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_counts import count_pixels
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.regions import Overlap, false_region_classes, measure_class_overlaps, measure_overlaps

Parts = Sequence[tuple[Predictor, Sequence[DataSetItem]]]
"""Items, each with the predictor that scores it: with folds, one that was not trained on it."""

_InferredRow = tuple[DataSetItem, Sample, tuple[Logits, int]]
"""An item, its sample, the logits of its batch and its row there."""


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`, one per image, in the order of the parts and their items.

    Attributes:
        classes: Names of the model's classes, the good one first.
        mask_scores: Histograms of the mask scores of all images whose defect pixels are known.
        defect_rate: Share of defective images for which the score is a probability; None if it is not
            calibrated, or this is unknown.
    """

    classes: tuple[str, ...]
    results: tuple[PhotographResult, ...]
    metrics: Metrics
    mask_scores: PixelHistogram
    defect_rate: float | None = None

    def reviews(self) -> tuple[PhotographResult, ...]:
        """Returns the results for review: defective ones, then good ones, each by falling score."""
        held = [result for result in self.results if result.outcome == "review"]
        return tuple(sorted(held, key=lambda result: (result.truth == 0, -result.score, result.name)))

    def errors(self) -> tuple[PhotographResult, ...]:
        """Returns the results with the wrong label: missed defects, then false alarms, the clearest first."""
        wrong = [result for result in self.results if result.outcome not in ("correct", "review")]
        return tuple(sorted(wrong, key=lambda r: (r.outcome, -abs(r.score - r.threshold), r.name)))

    def reliability(self, *, calibrated: bool = True) -> Reliability | None:
        """Returns how well scores are calibrated; None unless there are good and defective images.

        With `calibrated=False`: before calibration; then also None if the model is not calibrated.
        """
        if not calibrated and self.defect_rate is None:
            return None
        log_odds = [result.log_odds for result in self.results]
        scores = [result.score for result in self.results] if calibrated else expit(log_odds)
        return measure_reliability([result.truth for result in self.results], scores, self.defect_rate)


def evaluate(
    parts: Parts,
    read: Callable[[DataSetItem], Sample],
    *,
    batch_size: int = 8,
    progress: bool = True,
    resamples: int = RESAMPLES,
    pool: ReadingPool | None = None,
) -> Evaluation:
    """Evaluates models of one configuration, each on its items, with its thresholds.

    Without items all metrics are None or 0. At most `batch_size` images and masks are in memory at a time;
    with a pool, which reads two batches ahead and interprets the logits of one, four times as many. 0
    `resamples` give no intervals.

    Raises:
        DatasetError: If an item has a class that the model does not have.
        ImageError: If an image or mask cannot be read.
    """
    config = parts[0][0].config
    histogram = PixelHistogram()
    results: list[PhotographResult] = []
    for _, items in parts:
        check_classes(items, config.classes)
    count = sum(len(items) for _, items in parts)
    with progress_bar(total=count, desc="evaluate", unit="image", shown=progress) as bar:
        for predictor, items in parts:
            for result, mask_scores, sample in _compare_all(predictor, items, read, batch_size, pool):
                results.append(result)
                if is_known(sample):
                    histogram.add(mask_scores, sample.mask, sample.ignored)
                bar.update()
    metrics = compute_metrics(
        results,
        config.classes,
        histogram,
        threshold=config.thresholds.score,
        defect_rate=config.calibration.defect_rate,
        resamples=resamples,
    )
    return Evaluation(config.classes, tuple(results), metrics, histogram, config.calibration.defect_rate)


def _compare_all(
    predictor: Predictor,
    items: Sequence[DataSetItem],
    read: Callable[[DataSetItem], Sample],
    batch_size: int,
    pool: ReadingPool | None,
) -> Iterator[tuple[PhotographResult, NDArray[np.float32], Sample]]:
    """Yields the result, the mask scores and the sample of each item; the pool interprets the logits."""

    def compare(row: _InferredRow) -> tuple[PhotographResult, NDArray[np.float32], Sample]:
        item, sample, (logits, place) = row
        prediction = predictor.interpret(logits, place, sample.image.shape[:2], unlike=False)
        return _compare(item, sample, prediction, predictor.config.classes), prediction.mask_scores, sample

    rows = _infer(predictor, items, read, batch_size, pool)
    with closing(rows):
        yield from map(compare, rows) if pool is None else pool.map(compare, rows, batch_size)


def _infer(
    predictor: Predictor,
    items: Sequence[DataSetItem],
    read: Callable[[DataSetItem], Sample],
    batch_size: int,
    pool: ReadingPool | None,
) -> Generator[_InferredRow, None, None]:
    samples = (read(item) for item in items) if pool is None else pool.map(read, items, 2 * batch_size)
    with closing(samples):
        for start in range(0, len(items), batch_size):
            batch = items[start : start + batch_size]
            own = list(islice(samples, len(batch)))
            inferred = predictor.infer_each([sample.image for sample in own], batch_size=batch_size)
            yield from zip(batch, own, inferred, strict=True)


def check_classes(items: Sequence[DataSetItem], classes: tuple[str, ...]) -> None:
    """Raises a `DatasetError` if the model lacks the class of an item."""
    labels = labels_of(items)
    unknown = np.flatnonzero((labels < 0) | (labels >= len(classes))).tolist()
    if unknown:
        first = items[unknown[0]]
        raise DatasetError(
            f"The model does not have the class of {count_of(len(unknown), 'image')}, the first is "
            f"'{first.name}' with class {first.label}. Expected 0 to {len(classes) - 1} "
            f"({', '.join(classes)}): evaluate on the classes the model was trained with."
        )


def is_known(sample: Sample) -> bool:
    """Whether the defect pixels of an image are known; boxes and labels do not give them."""
    return sample.supervision == "mask" and (sample.mask is not None or sample.label == 0)


def _compare(
    item: DataSetItem, sample: Sample, prediction: Prediction, classes: tuple[str, ...]
) -> PhotographResult:
    known = is_known(sample)
    return PhotographResult(
        name=item.name,
        split=item.split_word or "",
        group=item.group,
        truth=item.label,
        true_label=classes[item.label],
        predicted_label=prediction.label,
        score=float(prediction.score),
        log_odds=float(prediction.log_odds),
        threshold=float(prediction.threshold),
        regions=len(prediction.regions),
        pixels=count_pixels(known_part(prediction.mask, sample), sample.mask) if known else None,
        overlaps=_overlaps(sample, prediction) if known else (),
        review_threshold=prediction.review_threshold,
        false_regions=false_region_classes(known_part(prediction.class_mask, sample), sample.mask)
        if known and prediction.class_mask is not None
        else (),
    )


def known_part(predicted: NDArray[np.uint8], sample: Sample) -> NDArray[np.uint8]:
    """A predicted mask without its ignored pixels."""
    return predicted if sample.ignored is None else np.where(sample.ignored > 0, np.uint8(0), predicted)


def _overlaps(sample: Sample, prediction: Prediction) -> tuple[Overlap, ...]:
    if prediction.class_mask is None or sample.mask is None:
        return measure_overlaps(known_part(prediction.mask, sample), sample.mask)
    classes = np.full(sample.mask.shape, sample.label, np.uint8) if sample.classes is None else sample.classes
    return measure_class_overlaps(
        known_part(prediction.class_mask, sample),
        np.where(sample.mask > 0, classes, np.uint8(0)).astype(np.uint8),
    )
