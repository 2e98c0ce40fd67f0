"""A file that takes space as long as there is some, so that there is a little left when there is none.

To delete pictures from a full disk, a transaction has to be written first, to that disk.
"""

import os
from contextlib import suppress
from pathlib import Path

RESERVED_BYTES = 64 * 2**20
"""More than SQLite writes to delete pictures until the rules are met again."""
SPARE = 4
"""Made only where this many times its size is free."""


class ReservedSpace:
    """The file.

    Args:
        path: Of it; its folder is there.
        size: Bytes; default: BALLAST_BYTES.
    """

    def __init__(self, path: Path, size: int | None = None) -> None:
        self._path, self._size = path, RESERVED_BYTES if size is None else size

    def take(self, free_bytes: int) -> None:
        """Makes the file where it is missing and `free_bytes` leave room for it."""
        if free_bytes < SPARE * self._size or self._is_whole():
            return
        with suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size)
            finally:
                os.close(descriptor)

    def drop(self) -> None:
        """Removes the file, which needs no space."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _is_whole(self) -> bool:
        try:
            return self._path.stat().st_size >= self._size
        except OSError:
            return False
