"""Inspects the photographs that arrive in a folder, one after another, until it is stopped."""

import errno
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from segdec.command_line.drop_folder import DONE, FAILED, Claim, DropFolder
from segdec.command_line.folder_scan import Ignored
from segdec.command_line.incoming_files import IncomingFiles
from segdec.command_line.inspection_loop import NOT_INSPECTED
from segdec.command_line.recorded_inspector import InspectionFailedError, RecordedInspector, StoppedError
from segdec.command_line.score_text import score_text

if TYPE_CHECKING:
    from segdec.command_line.folder_events import FolderEvents

FOLDER_ERRNOS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EXDEV, errno.ENAMETOOLONG})
"""Errors of moving a photograph that concern its folder; others may pass."""

MAX_REASONS = 200
"""Number of reasons to ignore files that are printed."""


class StatusMessages:
    """Prints on stderr what the command waits for and what it ignores."""

    def __init__(self) -> None:
        self._shown: str | None = None
        self._reasons: set[str] = set()

    def report_ignored(self, ignored: Mapping[str, Ignored]) -> None:
        """Prints what the command ignores, once for each reason."""
        for reason, each in ignored.items():
            if reason not in self._reasons and len(self._reasons) < MAX_REASONS:
                self._reasons.add(reason)
                first = "" if each.first is None else f" ({each.count}, the first is {each.first})"
                print(f"ignored: {_printable(reason + first)}", file=sys.stderr, flush=True)

    def report_wait(self, reason: str | None) -> None:
        """Prints what the command waits for, once for each reason; None means that it no longer waits."""
        if reason == self._shown:
            return
        print("inspecting again" if reason is None else f"waiting: {reason}", file=sys.stderr, flush=True)
        self._shown = reason

    def warn(self, text: str) -> None:
        """Prints a warning."""
        print(f"warning: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class FolderWatch:
    """The loop of `segdec watch`.

    Attributes:
        stable_after_s: Seconds without a change after which a photograph is complete.
        scan_interval_s: Seconds between scans of the folder without an event.
        answers: Whether to write each answer next to its photograph.
    """

    folder: DropFolder
    incoming: IncomingFiles
    inspector: RecordedInspector
    events: "FolderEvents"
    messages: StatusMessages
    stable_after_s: float
    scan_interval_s: float
    answers: bool = False

    def run(self) -> None:
        """Runs until it is stopped. A photograph that is still waiting for its answer then stays claimed.

        Raises:
            ServiceError: If the service would reject every photograph.
            BrokenPipeError: If the reader of stdout has closed it.
        """
        self.folder.remove_temporary_files()
        while not self.events.stopped:
            try:
                any_inspected = self.inspect_available()
            except StoppedError:
                return
            except BrokenPipeError:
                raise
            except OSError as error:  # the folder is missing, or its disk is full
                self.messages.report_wait(f"{error.filename or 'the folder'}: {error.strerror or error}")
                self.events.wait(self.scan_interval_s)
                continue
            if not any_inspected and self.incoming.has_files:
                self.events.wait(self.stable_after_s / 2)
            elif not any_inspected:
                self.events.wait_for_change(self.scan_interval_s)

    def inspect_available(self) -> bool:
        """Inspects the claimed and the complete photographs; returns whether there were any.

        Raises:
            StoppedError: If the command stops first.
            OSError: If the folder cannot be read or written; no photograph is lost.
        """
        self.folder.prepare()
        claims = list(self.folder.claims())
        for claim in claims:
            self._inspect(claim)
        paths = self.incoming.stable_files()
        self.messages.report_ignored(self.incoming.ignored)
        for path in paths:
            if self.events.stopped:
                raise StoppedError
            new = None if self.incoming.is_skipped(path.parent) else self._claim(path)
            if new is not None:
                self._inspect(new)
        return bool(claims or paths)

    def _claim(self, path: Path) -> Claim | None:
        """Claims a photograph; skips its subfolder if the photographs there cannot be moved."""
        try:
            return self.folder.claim(path)
        except OSError as error:
            if error.errno not in FOLDER_ERRNOS or path.parent == self.folder.inspecting.parent:
                raise
            self.incoming.skip_folder(path.parent, f"its photographs cannot be moved: {error.strerror}")
            return None

    def _inspect(self, claim: Claim) -> None:
        name = claim.name
        try:
            answer = self.inspector.inspect(claim)
        except InspectionFailedError as error:
            self.folder.finish(claim, FAILED, error.as_json(name))
            _print_row(name, NOT_INSPECTED, error.code)
            return
        details = f"{answer.model_dump_json(indent=1)}\n" if self.answers else None
        self.folder.finish(claim, DONE, details)
        decision = answer.decision
        numbers = score_text(decision.score, decision.threshold, decision.review_threshold)
        _print_row(name, decision.label, *numbers, f"record {answer.record_id or 'none'}")


def _print_row(name: str, *cells: str) -> None:
    print(_printable(name), *cells, sep="\t", flush=True)


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)
