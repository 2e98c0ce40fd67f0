"""A file that reserves disk space and releases it when the disk is full.

Deleting pictures from a full disk needs a transaction, which needs space on that disk.
"""

import os
from contextlib import suppress
from pathlib import Path

RESERVED_BYTES = 64 * 2**20
"""Larger than what SQLite writes while the retention deletes pictures from a full disk."""
MIN_FREE_FACTOR = 4
"""The file is created only if the disk has this many times its size free."""


class ReservedSpace:
    """The file at `path`, in an existing folder."""

    def __init__(self, path: Path, size: int | None = None) -> None:
        self._path, self._size = path, RESERVED_BYTES if size is None else size

    def reserve(self, free_bytes: int) -> None:
        """Creates the file if it is missing and `free_bytes` suffice."""
        if free_bytes < MIN_FREE_FACTOR * self._size or self._is_complete():
            return
        with suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size)
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Deletes the file."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _is_complete(self) -> bool:
        try:
            return self._path.stat().st_size >= self._size
        except OSError:
            return False
