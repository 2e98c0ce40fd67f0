"""Finds the complete photographs below a folder: those that have not changed for a while."""

import heapq
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from segdec.command_line.folder_scan import FolderScan, Ignored

MAX_TRACKED_FILES = 1000
"""Only the oldest photographs are tracked, so that memory does not grow with the backlog."""
RETRY_AFTER_S = 60.0
"""Time for which a folder whose photographs cannot be moved is ignored."""


class FileSignature(NamedTuple):
    """Changes whenever a file changes."""

    modified_ns: int
    size: int
    inode: int


def file_signature(status: os.stat_result) -> FileSignature:
    """Returns the signature of a file with this status."""
    return FileSignature(status.st_mtime_ns, status.st_size, status.st_ino)


class IncomingFiles:
    """Tracks the photographs that arrive in a folder and its subfolders.

    A file is complete after `stable_after_s` seconds without a change, by `clock`: the writing machine's
    clock may differ.

    Attributes:
        ignored: What the last scan ignored, by reason.
    """

    def __init__(
        self, folder: Path, stable_after_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder, self._stable_after_s, self._clock = folder, stable_after_s, clock
        self._seen: dict[str, tuple[FileSignature, float]] = {}
        self._skipped: dict[Path, tuple[str, float]] = {}
        self.ignored: dict[str, Ignored] = {}

    def stable_files(self) -> list[Path]:
        """Scans the folders and returns the complete photographs, oldest first, then by name."""
        now = self._clock()
        self._skipped = {path: (why, until) for path, (why, until) in self._skipped.items() if until > now}
        scan = FolderScan(self._folder, {path: why for path, (why, _) in self._skipped.items()})
        files = ((file_signature(status), name) for status, name in scan.photographs())
        oldest = heapq.nsmallest(MAX_TRACKED_FILES, files, key=lambda file: (file[0].modified_ns, file[1]))
        self.ignored = scan.ignored
        before, self._seen = self._seen, {}
        for signature, name in oldest:
            seen = before.get(name)
            self._seen[name] = seen if seen and seen[0] == signature else (signature, now)
        limit = now - self._stable_after_s
        return [self._folder / name for name, (_, since) in self._seen.items() if since <= limit]

    @property
    def has_files(self) -> bool:
        """Whether the last scan found any photographs, complete or not."""
        return bool(self._seen)

    def skip_folder(self, folder: Path, reason: str) -> None:
        """Ignores the photographs of a folder, not of its subfolders, for `RETRY_AFTER_S`."""
        self._skipped[folder] = reason, self._clock() + RETRY_AFTER_S

    def is_skipped(self, folder: Path) -> bool:
        """Whether the photographs of a folder are ignored."""
        return folder in self._skipped
