"""Which photographs that come into a folder are whole: those that have not changed for a while."""

import heapq
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from segdec.images import SUFFIXES

MAX_TRACKED_FILES = 1000
"""Photographs, the oldest, that are looked after at once: memory does not grow with those that wait."""
HIDDEN = (".", "~", "$")
"""What the names of files begin with that are not for others yet."""


class FileSignature(NamedTuple):
    """What shows that a file has changed."""

    modified_ns: int
    size: int
    inode: int


def file_signature(status: os.stat_result) -> FileSignature:
    """Keeps of a file's status what shows that it has changed."""
    return FileSignature(status.st_mtime_ns, status.st_size, status.st_ino)


class IncomingFiles:
    """The photographs of a folder, by when they came.

    Files whose name is no photograph's, is hidden or is a temporary one's are left alone, and links.

    Args:
        folder: Into which they come.
        settle_s: Seconds for which a whole one has not changed, by `clock`: that of the machine that writes
            it may be another.
        clock: Seconds that never go back.
    """

    def __init__(self, folder: Path, settle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._settle_s, self._clock = folder, settle_s, clock
        self._seen: dict[str, tuple[FileSignature, float]] = {}

    def stable_files(self) -> list[Path]:
        """Looks at the folder; returns those that are whole, the oldest first, and by name of one time.

        Raises:
            OSError: If the folder cannot be read.
        """
        now = self._clock()
        oldest = heapq.nsmallest(
            MAX_TRACKED_FILES, self._files(), key=lambda file: (file[0].modified_ns, file[1])
        )
        before = self._seen
        self._seen = {
            name: before[name] if name in before and before[name][0] == seen else (seen, now)
            for seen, name in oldest
        }
        return [
            self._folder / name for name, (_, since) in self._seen.items() if now - since >= self._settle_s
        ]

    @property
    def waiting(self) -> bool:
        """Whether there were any, whole or not, when it was looked last."""
        return bool(self._seen)

    def _files(self) -> Iterator[tuple[FileSignature, str]]:
        with os.scandir(self._folder) as entries:
            for entry in entries:
                suffix = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122 # a Path for each takes as long as the look
                if suffix not in SUFFIXES or entry.name.startswith(HIDDEN):
                    continue
                try:
                    if entry.is_file(follow_symlinks=False):
                        yield file_signature(entry.stat(follow_symlinks=False)), entry.name
                except FileNotFoundError:  # it has gone meanwhile
                    continue
