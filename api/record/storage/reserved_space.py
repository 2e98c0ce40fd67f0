"""A file that reserves disk space and releases it when the disk is full.

Deleting pictures from a full disk needs a transaction, which needs space on that disk.
"""

import os
from contextlib import suppress
from pathlib import Path

MIN_FREE_FACTOR = 2
"""The file is created only if the disk has this many times its size free."""


class ReservedSpace:
    """The file at `path`, in an existing folder, with `size` bytes; 0 = no file.

    The default of the setting is more than SQLite writes while the retention deletes from a full disk.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size

    def missing_bytes(self, free_bytes: int) -> int:
        """Returns how many bytes are missing until as much as the file's size is free beside the file."""
        return (1 if self._is_complete() else MIN_FREE_FACTOR) * self._size - free_bytes

    def reserve(self, free_bytes: int) -> None:
        """Creates the file if it is missing and `free_bytes` suffice."""
        if not self._size or self.missing_bytes(free_bytes) > 0 or self._is_complete():
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
