"""Running a model over a split: one row a photograph, and the figures of all."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from datasets.sample import Record, Sample
from segdec.errors import DatasetError
from segdec.files import write_text_atomic
from segdec.postprocessing import Prediction
from segdec.predictor import Predictor
from training.metrics import Metrics, PixelCounts, count_pixels, measure
from training.thresholds import PixelHistogram

Outcome = Literal["correct", "false negative", "false positive", "wrong class"]

COLUMNS = (
    "name",
    "split",
    "true_label",
    "predicted_label",
    "score",
    "threshold",
    "regions",
    "tp_px",
    "fp_px",
    "fn_px",
)


@dataclass(frozen=True)
class Row:
    """What the model said about one photograph, beside the truth.

    Attributes:
        name: The record's name.
        split: Where the record belongs; empty when it has no split.
        truth: Index of its class; 0 is good.
        true_label: Name of its class.
        predicted_label: Name of the class the model gave.
        score: 1 − P(good).
        threshold: Score from which the photograph counts as defective.
        regions: Connected defects in the predicted mask.
        pixels: Predicted mask against truth; None for a defective photograph without a mask, whose
            defect pixels are unknown.
    """

    name: str
    split: str
    truth: int
    true_label: str
    predicted_label: str
    score: float
    threshold: float
    regions: int
    pixels: PixelCounts | None

    @property
    def outcome(self) -> Outcome:
        """How the decision turned out."""
        if self.true_label == self.predicted_label:
            return "correct"
        if self.truth == 0:
            return "false positive"
        return "false negative" if self.score < self.threshold else "wrong class"


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`.

    Attributes:
        classes: Names of the model's classes, the good one first.
        rows: One a photograph, in the order of the records.
        metrics: The figures of all rows.
        mask_scores: Mask scores of all photographs whose defect pixels are known.
    """

    classes: tuple[str, ...]
    rows: tuple[Row, ...]
    metrics: Metrics
    mask_scores: PixelHistogram

    def errors(self) -> tuple[Row, ...]:
        """Rows with the wrong label: missed defects first, then false alarms, the plainest first."""
        wrong = [row for row in self.rows if row.outcome != "correct"]
        return tuple(sorted(wrong, key=lambda row: (row.outcome, -abs(row.score - row.threshold), row.name)))


def evaluate(
    predictor: Predictor,
    records: Sequence[Record],
    read: Callable[[Record], Sample],
    *,
    batch_size: int = 8,
    progress: bool = True,
) -> Evaluation:
    """Runs the model over `records` and compares its answers with the truth.

    At most `batch_size` photographs and masks are in memory at a time. The thresholds are those of
    the predictor's configuration.

    Args:
        predictor: The model.
        records: Photographs to look at; none gives an evaluation whose figures are None or 0.
        read: Loads one record, as `datasets` does.
        batch_size: Photographs a step.
        progress: Whether to show a progress bar on standard error.

    Raises:
        DatasetError: A record has a class the model does not know.
        ImageError: A photograph or mask cannot be read.
    """
    config = predictor.config
    check_classes(records, config.classes)
    histogram = PixelHistogram()
    rows: list[Row] = []
    with tqdm(total=len(records), desc="evaluate", unit="image", disable=None if progress else True) as bar:
        for batch in _batches(records, batch_size):
            samples = [read(record) for record in batch]
            predictions = predictor.predict([sample.image for sample in samples], batch_size=batch_size)
            for record, sample, prediction in zip(batch, samples, predictions, strict=True):
                rows.append(_compare(record, sample, prediction, config.classes))
                if _is_known(sample):
                    histogram.add(prediction.mask_scores, sample.mask)
            bar.update(len(batch))
    return Evaluation(
        config.classes, tuple(rows), _measure(rows, config.thresholds.score, config.classes), histogram
    )


def check_classes(records: Iterable[Record], classes: tuple[str, ...]) -> None:
    """Refuses records whose class index the model does not have.

    Raises:
        DatasetError: Names the first such record and their number.
    """
    unknown = [record for record in records if not 0 <= record.label < len(classes)]
    if unknown:
        raise DatasetError(
            f"{len(unknown)} images have a class the model does not know, the first is "
            f"'{unknown[0].name}' with class {unknown[0].label}. Expected 0 to {len(classes) - 1} "
            f"({', '.join(classes)}): evaluate on the classes the model was trained with."
        )


def _batches(records: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
    for start in range(0, len(records), size):
        yield records[start : start + size]


def _is_known(sample: Sample) -> bool:
    return sample.mask is not None or sample.label == 0


def _compare(record: Record, sample: Sample, prediction: Prediction, classes: tuple[str, ...]) -> Row:
    return Row(
        name=record.name,
        split=record.split or "",
        truth=record.label,
        true_label=classes[record.label],
        predicted_label=prediction.label,
        score=float(prediction.score),
        threshold=float(prediction.threshold),
        regions=len(prediction.regions),
        pixels=count_pixels(prediction.mask, sample.mask) if _is_known(sample) else None,
    )


def _measure(rows: Sequence[Row], threshold: float, classes: tuple[str, ...]) -> Metrics:
    return measure(
        [row.truth for row in rows],
        [classes.index(row.predicted_label) for row in rows],
        [row.score for row in rows],
        [row.pixels for row in rows],
        threshold=threshold,
        num_classes=len(classes),
    )


def write_predictions(path: Path, rows: Iterable[Row]) -> None:
    """Writes one line a photograph as CSV, atomically.

    Scores and thresholds keep all digits. The pixel columns (counts in px) are empty where the
    defect pixels are unknown.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        pixels = (row.pixels.tp, row.pixels.fp, row.pixels.fn) if row.pixels else ("", "", "")
        decision = (row.true_label, row.predicted_label, row.score, row.threshold)
        writer.writerow((row.name, row.split, *decision, row.regions, *pixels))
    write_text_atomic(path, text.getvalue())
