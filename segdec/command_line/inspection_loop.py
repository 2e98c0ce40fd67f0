"""Inspects photographs with a progress bar and reports each result, for example in a table."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TextIO

from tqdm import tqdm

from segdec.command_line.inspectors import InspectedFile, Inspector
from segdec.command_line.score_text import score_text
from segdec.errors import ImageError
from segdec.inference.pipeline import Pipeline, PipelineStage
from segdec.runtime.cli import progress_bar
from segdec.runtime.identifiers import REVIEW

MIN_PROGRESS_IMAGES = 3
"""No progress bar for so few images."""

NOT_INSPECTED = "NOT_INSPECTED"
"""Replaces the label of a photograph that could not be inspected."""

HEADINGS = ("image", "label", "score", "threshold", "regions")
REASON = "reason"
"""Heading of the last column if an inspection plan decides."""


class Report(Protocol):
    """Receives the results, photograph by photograph; `add_failure` those that could not be inspected."""

    def add_inspected(self, file: InspectedFile) -> None: ...

    def add_failure(self, path: Path, error: ImageError) -> None: ...


def inspect(images: Sequence[Path], inspector: Inspector, report: Report, *more_stages: PipelineStage) -> int:
    """Inspects `images` in order; returns how many could not be inspected.

    `more_stages` are applied to each inspected file before it is reported, each in its own thread.

    Raises:
        SegdecError: If no further photograph can be inspected.
    """
    failed, in_flight = 0, inspector.max_in_flight + len(more_stages)
    stages = (*inspector.stages, *more_stages)
    with Pipeline[InspectedFile](images, *stages, max_in_flight=in_flight) as inspected:
        for path in progress_bar(images, unit="image", leave=False, shown=len(images) > MIN_PROGRESS_IMAGES):
            try:
                file = next(inspected)
            except ImageError as error:
                failed += 1
                report.add_failure(path, error)
            else:
                report.add_inspected(file)
    return failed


def print_review_count(reviews: int, images: Sequence[Path]) -> None:
    """Prints on stderr how many of `images` need review."""
    if reviews:
        _print_line(
            f"FOR REVIEW: {reviews:,} of {len(images):,} photographs. A person must check them.", sys.stderr
        )


def print_plan_changes(changes: Counter[tuple[str, str]], images: Sequence[Path]) -> None:
    """Prints on stderr how many verdicts of the model an inspection plan changed, by both labels."""
    if changes:
        counts = changes.most_common()
        each = ", ".join(f"{count:,} from {before} to {after}" for (before, after), count in counts)
        _print_line(f"The plan changed {changes.total():,} of {len(images):,} verdicts: {each}.", sys.stderr)


def print_not_inspected_count(missed: int, images: Sequence[Path]) -> None:
    """Prints on stderr how many of `images` were not inspected: one row among many is easily overlooked."""
    if missed:
        count = f"{missed:,} of {len(images):,} photographs"
        _print_line(f"NOT INSPECTED: {count}. Hold these parts; their state is unknown.", sys.stderr)


# === The table ===


class TerminalTable:
    """Prints one row per photograph, and warnings and errors to stderr, above any progress bar.

    The longest of `images` and `labels` set the widths of the first two columns. `with_reason` is whether an
    inspection plan decides: a last column then has the finding that decided.

    Attributes:
        review_count: Number of photographs with the label `review`.
        plan_changes: Number of photographs whose label an inspection plan changed, by both labels.
    """

    def __init__(self, images: Sequence[Path], labels: Sequence[str], *, with_reason: bool = False) -> None:
        self.review_count = 0
        self.plan_changes: Counter[tuple[str, str]] = Counter()
        self._with_reason = with_reason
        path_width = max(map(len, map(str, images)), default=0)
        limits_width = len("0.020-0.091") if REVIEW in labels else 0
        longest = (path_width, max(map(len, [*labels, NOT_INSPECTED])), 0, limits_width, 0)
        self._widths = [max(len(heading), width) for heading, width in zip(HEADINGS, longest, strict=True)]

    def print_headings(self) -> None:
        """Prints the first line."""
        self._print((*HEADINGS, REASON) if self._with_reason else HEADINGS)

    def add_inspected(self, file: InspectedFile) -> None:
        """Prints the row of a photograph that was inspected."""
        self.review_count += file.label == REVIEW
        numbers = score_text(file.score, file.threshold, file.review_threshold)
        self._print((str(file.path), file.label, *numbers, str(len(file.region_labels)), file.reason))
        if file.model_label not in (None, file.label):
            self.plan_changes[file.model_label, file.label] += 1
        for warning in file.warnings:
            _print_line(f"warning: {file.path}: {warning}", sys.stderr)

    def add_failure(self, path: Path, error: ImageError) -> None:
        """Prints the row of a photograph that could not be inspected, and the reason."""
        self._print((str(path), NOT_INSPECTED, "-", "-", "-"))
        message = str(error)
        _print_line(f"error: {message if str(path) in message else f'{path}: {message}'}", sys.stderr)

    def _print(self, cells: Sequence[str]) -> None:
        """Aligns text to the left and numbers to the right; a reason follows them."""
        left = [cell.ljust(width) for cell, width in zip(cells[:2], self._widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(cells[2:5], self._widths[2:], strict=True)]
        _print_line("  ".join([*left, *right, *cells[5:]]).rstrip(), sys.stdout)


def _print_line(line: str, file: TextIO) -> None:
    with tqdm.external_write_mode(file):
        print(line, file=file, flush=True)
