"""Finds the complete photographs in a folder: those that have not changed for a while."""

import heapq
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from segdec.images import SUFFIXES

MAX_TRACKED_FILES = 1000
"""Only the oldest photographs are tracked, so that memory does not grow with the backlog."""
HIDDEN = (".", "~", "$")
"""First characters of hidden and temporary files."""


class FileSignature(NamedTuple):
    """Changes whenever a file changes."""

    modified_ns: int
    size: int
    inode: int


def file_signature(status: os.stat_result) -> FileSignature:
    """Returns the signature of a file with this status."""
    return FileSignature(status.st_mtime_ns, status.st_size, status.st_ino)


class IncomingFiles:
    """Tracks the photographs that arrive in a folder.

    It ignores links, hidden and temporary files, and files without an image suffix. A file is complete after
    `stable_after_s` seconds without a change, by `clock`: the writing machine's clock may differ.
    """

    def __init__(
        self, folder: Path, stable_after_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder, self._stable_after_s, self._clock = folder, stable_after_s, clock
        self._seen: dict[str, tuple[FileSignature, float]] = {}

    def stable_files(self) -> list[Path]:
        """Scans the folder and returns the complete photographs, oldest first, then by name."""
        now = self._clock()
        found = heapq.nsmallest(
            MAX_TRACKED_FILES, self._files(), key=lambda file: (file[0].modified_ns, file[1])
        )
        before, self._seen = self._seen, {}
        for signature, name in found:
            seen = before.get(name)
            self._seen[name] = seen if seen and seen[0] == signature else (signature, now)
        limit = now - self._stable_after_s
        return [self._folder / name for name, (_, since) in self._seen.items() if since <= limit]

    @property
    def has_files(self) -> bool:
        """Whether the last scan found any photographs, complete or not."""
        return bool(self._seen)

    def _files(self) -> Iterator[tuple[FileSignature, str]]:
        with os.scandir(self._folder) as entries:
            for entry in entries:
                suffix = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122 # a Path per file is slow
                if suffix not in SUFFIXES or entry.name.startswith(HIDDEN):
                    continue
                try:
                    if entry.is_file(follow_symlinks=False):
                        yield file_signature(entry.stat(follow_symlinks=False)), entry.name
                except FileNotFoundError:  # removed since the listing
                    continue
