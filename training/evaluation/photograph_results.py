"""What a model said about photographs, one result each, and the file that keeps it."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from segdec.files import write_text_atomic
from training.evaluation.pixel_counts import PixelCounts
from training.evaluation.true_regions import Overlap

Outcome = Literal["correct", "false negative", "false positive", "wrong class"]

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
)


@dataclass(frozen=True)
class PhotographResult:
    """What the model said about one photograph, beside the truth.

    Attributes:
        name: The record's name.
        split: Where the record belongs; empty if it has no split.
        group: The item that it shows; photographs of one item are no independent evidence.
        truth: Index of its class; 0 is good.
        true_label: Name of its class.
        predicted_label: Name of the class the model gave.
        score: 1 − P(good).
        threshold: Score from which the photograph counts as defective.
        regions: Connected defects in the predicted mask.
        pixels: Predicted mask against truth; None for a defective photograph whose defect pixels are
            unknown: one without a mask, or with boxes alone.
        overlaps: The true regions and how much of each is covered; empty where they are unknown.
    """

    name: str
    split: str
    group: str
    truth: int
    true_label: str
    predicted_label: str
    score: float
    threshold: float
    regions: int
    pixels: PixelCounts | None
    overlaps: tuple[Overlap, ...] = ()

    @property
    def detected(self) -> bool:
        """Whether the photograph is called defective."""
        return self.score >= self.threshold

    @property
    def outcome(self) -> Outcome:
        """How the decision turned out."""
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
        writer.writerow((result.name, result.split, result.group, *decision, result.regions, *pixels))
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
        if missing := set(COLUMNS) - set(lines.fieldnames or ()):
            raise ValueError(f"it lacks the columns {', '.join(sorted(missing))}")
        return [_parse(line, classes) for line in lines]


def _parse(line: dict[str, str], classes: tuple[str, ...]) -> PhotographResult:
    counts = [line[f"{kind}_px"] for kind in ("tp", "fp", "fn")]
    for label in (line["true_label"], line["predicted_label"]):
        if label not in classes:
            raise ValueError(f"'{line['name']}' has the class '{label}', which is none of the model's")
    return PhotographResult(
        name=line["name"],
        split=line["split"],
        group=line["group"],
        truth=classes.index(line["true_label"]),
        true_label=line["true_label"],
        predicted_label=line["predicted_label"],
        score=float(line["score"]),
        threshold=float(line["threshold"]),
        regions=int(line["regions"]),
        pixels=PixelCounts(*map(int, counts)) if any(counts) else None,
    )
