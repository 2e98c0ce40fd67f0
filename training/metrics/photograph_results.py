"""What a model said about photographs, one result each, and the file that keeps it."""

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from segdec.config import REVIEW
from segdec.runtime.files import write_text_atomic
from training.metrics.pixel_counts import PixelCounts
from training.metrics.regions import Overlap

Outcome = Literal["correct", "false negative", "false positive", "wrong class", "review"]

SATURATION = 2.0**-24
"""Scores nearer to 0 or 1 count as this near: float32 logits say no more, whatever the last digits."""

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
LATER = frozenset({"log_odds", "review_threshold"})
"""Columns that a file of an earlier version lacks."""


@dataclass(frozen=True)
class PhotographResult:
    """What the model said about one photograph, beside the truth.

    Attributes:
        name: The record's name.
        split: Where the record belongs; empty if it has no split.
        group: The item that it shows; photographs of one item are no independent evidence.
        truth: Index of its class; 0 is good.
        true_label: Name of its class.
        predicted_label: Name of the class the model gave, or `review`.
        score: 1 − P(good).
        log_odds: The network's own log-odds of a defect, before calibration.
        threshold: Score from which the photograph counts as defective.
        regions: Connected defects in the predicted mask.
        pixels: Predicted mask against truth; None for a defective photograph whose defect pixels are
            unknown: one without a mask, or with boxes alone.
        overlaps: The true regions and how much of each is covered; empty where they are unknown.
        review_threshold: Score from which it is at least for review; None where there is no review.
        false_regions: Class of each predicted region where there is no defect; empty where the model has one
            mask for all classes, or the true ones are unknown.
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
        """Whether the photograph is called defective."""
        return self.score >= self.threshold

    @property
    def passed(self) -> bool:
        """Whether the photograph is called good."""
        return self.score < self.lowest_threshold

    @property
    def lowest_threshold(self) -> float:
        """Score below which it is called good."""
        return self.threshold if self.review_threshold is None else self.review_threshold

    @property
    def outcome(self) -> Outcome:
        """How the decision turned out."""
        if not self.passed and not self.detected:
            return "review"
        if self.true_label == self.predicted_label:
            return "correct"
        if self.truth == 0:
            return "false positive"
        return "wrong class" if self.detected else "false negative"


def write_predictions(path: Path, results: Iterable[PhotographResult]) -> None:
    """Writes one line a photograph as CSV, atomically.

    Scores and thresholds keep all digits. The pixel columns (counts in px) are empty where the
    defect pixels are unknown.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in results:
        pixels = (result.pixels.tp, result.pixels.fp, result.pixels.fn) if result.pixels else ("", "", "")
        decision = (result.true_label, result.predicted_label, result.score, result.threshold)
        raw = (result.log_odds, "" if result.review_threshold is None else result.review_threshold)
        writer.writerow((result.name, result.split, result.group, *decision, result.regions, *pixels, *raw))
    write_text_atomic(path, text.getvalue())


def read_predictions(path: Path, classes: tuple[str, ...]) -> list[PhotographResult]:
    """Reads what `write_predictions` wrote; the overlaps lie elsewhere.

    Args:
        path: The CSV file.
        classes: Names of the model's classes, the good one first.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If a column is missing, or a value is no such value or class.
    """
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if missing := set(COLUMNS) - LATER - set(lines.fieldnames or ()):
            raise ValueError(f"it lacks the columns {', '.join(sorted(missing))}")
        return [_parse(line, classes) for line in lines]


def _parse(line: dict[str, str], classes: tuple[str, ...]) -> PhotographResult:
    counts = [line[f"{kind}_px"] for kind in ("tp", "fp", "fn")]
    review, score = line.get("review_threshold"), float(line["score"])
    for label in (line["true_label"], line["predicted_label"]):
        if label not in classes and not (review and label == REVIEW):
            raise ValueError(f"'{line['name']}' has the class '{label}', which is none of the model's")
    return PhotographResult(
        name=line["name"],
        split=line["split"],
        group=line["group"],
        truth=classes.index(line["true_label"]),
        true_label=line["true_label"],
        predicted_label=line["predicted_label"],
        score=score,
        log_odds=float(line.get("log_odds") or score_log_odds(score)),
        threshold=float(line["threshold"]),
        regions=int(line["regions"]),
        pixels=PixelCounts(*map(int, counts)) if any(counts) else None,
        review_threshold=float(review) if review else None,
    )


def score_log_odds(score: float) -> float:
    """Returns the log-odds of a score that is not calibrated; near 0 and 1 it does not tell them exactly."""
    near = min(max(score, SATURATION), 1 - SATURATION)
    return math.log(near / (1 - near))
