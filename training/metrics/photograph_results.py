"""Predictions of a model with the truth, one result per image, and their file predictions.csv."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from segdec.runtime.csv_cells import neutralise_cells, restore_text
from segdec.runtime.files import write_text_atomic
from segdec.runtime.identifiers import REVIEW
from training.metrics.pixel_counts import PixelCounts
from training.metrics.regions import Overlap

Outcome = Literal["correct", "false negative", "false positive", "wrong class", "review"]

SATURATION = 2.0**-24
"""Scores are clipped to this distance from 0 and 1: float32 logits do not resolve more."""

COLUMNS = (
    "name",
    "split",
    "group",
    "true_label",
    "predicted_label",
    "score",
    "threshold",
    "regions",
    "tp_px",
    "fp_px",
    "fn_px",
    "log_odds",
    "review_threshold",
)


@dataclass(frozen=True)
class PhotographResult:
    """The prediction for one image, with the truth.

    Attributes:
        split: Split of the item; empty if it has none.
        group: The part that the image shows; images of one part are not independent.
        truth: Index of the true class; 0 is good.
        predicted_label: Name of the predicted class, or `review`.
        score: 1 − P(good).
        log_odds: Log-odds of a defect, before calibration.
        threshold: Score from which the image is defective.
        regions: Connected regions in the predicted mask.
        pixels: Predicted against true mask; None for a defective image without a mask or with boxes only.
        overlaps: Coverage of the true regions; empty if they are unknown.
        review_threshold: Score from which the image is at least for review; None without review.
        false_regions: Class of each predicted region without a defect; empty if the model has one mask for
            all classes, or the true regions are unknown.
    """

    name: str
    split: str
    group: str
    truth: int
    true_label: str
    predicted_label: str
    score: float
    log_odds: float
    threshold: float
    regions: int
    pixels: PixelCounts | None
    overlaps: tuple[Overlap, ...] = ()
    review_threshold: float | None = None
    false_regions: tuple[int, ...] = ()

    @property
    def detected(self) -> bool:
        """Whether the image is called defective."""
        return self.score >= self.threshold

    @property
    def passed(self) -> bool:
        """Whether the image is called good."""
        return self.score < self.lowest_threshold

    @property
    def lowest_threshold(self) -> float:
        """Score below which the image is called good."""
        return self.threshold if self.review_threshold is None else self.review_threshold

    @property
    def outcome(self) -> Outcome:
        """The decision compared with the truth."""
        if not self.passed and not self.detected:
            return "review"
        if self.true_label == self.predicted_label:
            return "correct"
        if self.truth == 0:
            return "false positive"
        return "wrong class" if self.detected else "false negative"


def write_predictions(path: Path, results: Iterable[PhotographResult]) -> None:
    """Writes one line per image as CSV, atomically.

    Scores and thresholds keep all digits. The pixel columns are empty if the defect pixels are unknown.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in results:
        pixels = (result.pixels.tp, result.pixels.fp, result.pixels.fn) if result.pixels else ("", "", "")
        decision = (result.true_label, result.predicted_label, result.score, result.threshold)
        raw = (result.log_odds, "" if result.review_threshold is None else result.review_threshold)
        cells = (result.name, result.split, result.group, *decision, result.regions, *pixels, *raw)
        writer.writerow(neutralise_cells(cells))
    write_text_atomic(path, text.getvalue())


def read_predictions(path: Path, classes: tuple[str, ...]) -> list[PhotographResult]:
    """Reads the file of `write_predictions`, which has no overlaps.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If a column is missing or a value is invalid.
    """
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if missing := set(COLUMNS) - set(lines.fieldnames or ()):
            raise ValueError(f"missing columns: {', '.join(sorted(missing))}")
        return [_parse({key: restore_text(line[key]) for key in COLUMNS}, classes) for line in lines]


def _parse(line: dict[str, str], classes: tuple[str, ...]) -> PhotographResult:
    counts = [line[f"{kind}_px"] for kind in ("tp", "fp", "fn")]
    review, score = line["review_threshold"], float(line["score"])
    for label in (line["true_label"], line["predicted_label"]):
        if label not in classes and not (review and label == REVIEW):
            raise ValueError(f"'{line['name']}' has the class '{label}', which the model does not have")
    return PhotographResult(
        name=line["name"],
        split=line["split"],
        group=line["group"],
        truth=classes.index(line["true_label"]),
        true_label=line["true_label"],
        predicted_label=line["predicted_label"],
        score=score,
        log_odds=float(line["log_odds"]),
        threshold=float(line["threshold"]),
        regions=int(line["regions"]),
        pixels=PixelCounts(*map(int, counts)) if any(counts) else None,
        review_threshold=float(review) if review else None,
    )
