"""Inspecting photographs one after another, with a progress bar, into a report."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from segdec.command_line.inspectors import Finding, Inspector
from segdec.errors import ImageError
from segdec.pipeline import Pipeline, Stage

FEW_IMAGES = 3
"""So many have their rows before a progress bar says anything."""


class Report(Protocol):
    """Takes what is found, photograph by photograph."""

    def add_finding(self, finding: Finding) -> None:
        """A photograph was inspected."""
        ...

    def add_failure(self, path: Path, error: ImageError) -> None:
        """A photograph could not be inspected."""
        ...


def inspect(images: Sequence[Path], inspector: Inspector, report: Report, *also: Stage) -> int:
    """Inspects `images`, in their order; returns how many could not be.

    Args:
        images: Image files.
        inspector: Finds defects in them.
        report: Takes what is found.
        also: What is done with each finding before it is reported, in a thread of its own.

    Raises:
        SegdecError: If no photograph can be inspected any more.
    """
    failed = 0
    with Pipeline[Finding](images, *inspector.stages, *also, ahead=inspector.ahead + len(also)) as findings:
        for path in _progress(images):
            try:
                finding = next(findings)
            except ImageError as error:
                failed += 1
                report.add_failure(path, error)
            else:
                report.add_finding(finding)
    return failed


def _progress(images: Sequence[Path]) -> Iterable[Path]:
    """`images`, with a bar on stderr where that is a terminal and there are more than a few."""
    shown: Iterable[Path] = tqdm(
        images, unit="image", leave=False, disable=None if len(images) > FEW_IMAGES else True
    )
    return shown
