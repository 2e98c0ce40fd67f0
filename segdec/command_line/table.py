"""The command line's table: a row for each photograph."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from segdec.command_line.inspectors import Finding
from segdec.errors import ImageError

HEADINGS = ("image", "label", "score", "threshold", "regions")


class Table:
    """Prints rows below headings as they come, warnings and errors to stderr, above any progress bar.

    Args:
        images: All paths that will come, and
        classes: all labels: they make the columns' widths.
    """

    def __init__(self, images: Sequence[Path], classes: Sequence[str]) -> None:
        longest = (max(map(len, map(str, images)), default=0), max(map(len, [*classes, "error"])), 0, 0, 0)
        self._widths = [max(len(heading), width) for heading, width in zip(HEADINGS, longest, strict=True)]

    def print_headings(self) -> None:
        """Prints the first line."""
        self._print(HEADINGS)

    def add_finding(self, finding: Finding) -> None:
        """Prints the row of a photograph that was inspected."""
        numbers = (f"{finding.score:.3f}", f"{finding.threshold:.3f}", str(finding.region_count))
        self._print((str(finding.path), finding.label, *numbers))
        for warning in finding.warnings:
            _print_line(f"warning: {finding.path}: {warning}", sys.stderr)

    def add_failure(self, path: Path, error: ImageError) -> None:
        """Prints the row of a photograph that could not be inspected, and why."""
        self._print((str(path), "error", "-", "-", "-"))
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
