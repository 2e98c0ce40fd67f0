"""Inspecting photographs one after another, with a progress bar, into a report such as a table."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, TextIO

from tqdm import tqdm

from segdec.command_line.inspectors import InspectedFile, Inspector
from segdec.command_line.score_text import score_text
from segdec.config import REVIEW
from segdec.errors import ImageError
from segdec.inference.pipeline import Pipeline, Stage
from segdec.runtime.cli import progress_bar

MIN_PROGRESS_IMAGES = 3
"""So many have their rows before a progress bar says anything."""

NOT_INSPECTED = "NOT_INSPECTED"
"""Stands in place of a label where there is none; one word, so that rows keep their columns."""

HEADINGS = ("image", "label", "score", "threshold", "regions")


class Report(Protocol):
    """Takes what is found, photograph by photograph."""

    def add_inspected(self, file: InspectedFile) -> None:
        """Takes a photograph that was inspected."""
        ...

    def add_failure(self, path: Path, error: ImageError) -> None:
        """Takes a photograph that could not be inspected, and why."""
        ...


def inspect(images: Sequence[Path], inspector: Inspector, report: Report, *also: Stage) -> int:
    """Inspects `images`, in their order; returns how many could not be.

    Args:
        images: Image files.
        inspector: Finds defects in them.
        report: Takes what is found.
        also: What is done with each inspected file before it is reported, in a thread of its own.

    Raises:
        SegdecError: If no photograph can be inspected any more.
    """
    failed = 0
    stages = (*inspector.stages, *also)
    with Pipeline[InspectedFile](
        images, *stages, max_in_flight=inspector.max_in_flight + len(also)
    ) as inspected:
        for path in _progress(images):
            try:
                file = next(inspected)
            except ImageError as error:
                failed += 1
                report.add_failure(path, error)
            else:
                report.add_inspected(file)
    return failed


def _progress(images: Sequence[Path]) -> Iterable[Path]:
    """`images`, with a bar on stderr where that is a terminal and there are more than a few."""
    shown: Iterable[Path] = progress_bar(
        images, unit="image", leave=False, shown=len(images) > MIN_PROGRESS_IMAGES
    )
    return shown


def print_review_count(reviews: int, images: Sequence[Path]) -> None:
    """Says behind the table, on stderr, how many of `images` somebody has to look at."""
    if reviews:
        _print_line(
            f"FOR REVIEW: {reviews:,} of {len(images):,} photographs. Somebody has to look at them.",
            sys.stderr,
        )


def print_missed_count(missed: int, images: Sequence[Path]) -> None:
    """Says last, on stderr, how many of `images` were not inspected: among many rows one is overlooked."""
    if missed:
        count = f"{missed:,} of {len(images):,} photographs"
        _print_line(f"NOT INSPECTED: {count}. Hold the parts: nothing is known about them.", sys.stderr)


# === The table ===


class TerminalTable:
    """Prints rows below headings as they come, warnings and errors to stderr, above any progress bar.

    Args:
        images: All paths that will come; the longest makes the first column's width.
        labels: That may be answered; the longest makes the second column's width.

    Attributes:
        review_count: Photographs whose rows say `review`.
    """

    def __init__(self, images: Sequence[Path], labels: Sequence[str]) -> None:
        self.review_count = 0
        longest = (
            max(map(len, map(str, images)), default=0),
            max(map(len, [*labels, NOT_INSPECTED])),
            0,
            len("0.020-0.091") if REVIEW in labels else 0,
            0,
        )
        self._widths = [max(len(heading), width) for heading, width in zip(HEADINGS, longest, strict=True)]

    def print_headings(self) -> None:
        """Prints the first line."""
        self._print(HEADINGS)

    def add_inspected(self, file: InspectedFile) -> None:
        """Prints the row of a photograph that was inspected."""
        self.review_count += file.label == REVIEW
        numbers = score_text(file.score, file.threshold, file.review_threshold)
        self._print((str(file.path), file.label, *numbers, str(len(file.region_labels))))
        for warning in file.warnings:
            _print_line(f"warning: {file.path}: {warning}", sys.stderr)

    def add_failure(self, path: Path, error: ImageError) -> None:
        """Prints the row of a photograph that could not be inspected, and why."""
        self._print((str(path), NOT_INSPECTED, "-", "-", "-"))
        message = str(error)
        _print_line(f"error: {message if str(path) in message else f'{path}: {message}'}", sys.stderr)

    def _print(self, cells: Sequence[str]) -> None:
        """Text to the left, numbers to the right."""
        left = [cell.ljust(width) for cell, width in zip(cells[:2], self._widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(cells[2:], self._widths[2:], strict=True)]
        _print_line("  ".join([*left, *right]).rstrip(), sys.stdout)


def _print_line(line: str, file: TextIO) -> None:
    with tqdm.external_write_mode(file):
        print(line, file=file, flush=True)
