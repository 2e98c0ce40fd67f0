"""Appends each event as a line to a file, for whoever reads files."""

import asyncio
import os
import threading
from contextlib import suppress
from pathlib import Path

from api.delivery.sink import DeliveryError, OutboxMessage

PIECE = 64 * 1024
BEGINNING = b'{"specversion":'
"""Of each line."""


class JsonLines:
    """A file of whole lines. Whoever moves it away, as logrotate does, finds a new one in its place.

    Args:
        path: Of the file; its folder is there.
    """

    name = "jsonl"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._lock = threading.Lock()

    async def deliver(self, message: OutboxMessage) -> None:
        """Returns when the line is on the disk.

        Raises:
            DeliveryError: If it cannot be written.
        """
        line = message.event.encode() + b"\n"
        try:
            await asyncio.to_thread(self._append, line)
        except OSError as error:
            raise DeliveryError(f"{error.strerror or error}", "unreachable") from error

    async def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._close()

    def _append(self, line: bytes) -> None:
        with self._lock:
            descriptor = self._open()
            end = os.fstat(descriptor).st_size
            try:
                _write_all(descriptor, line)
                os.fsync(descriptor)
            except OSError:
                with suppress(OSError):  # else the next open mends it
                    os.ftruncate(descriptor, end)
                self._close()
                raise

    def _open(self) -> int:
        """Returns the file that lies at the path now."""
        if self._descriptor is not None and not self._is_there(self._descriptor):
            self._close()
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o640)
            _mend(self._descriptor)
            _sync_folder(self._path.parent)
        return self._descriptor

    def _is_there(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _write_all(descriptor: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _mend(descriptor: int) -> None:
    """Cuts off what a crash left of a line: it was never said to be delivered, and comes again whole.

    What is no beginning of an event is somebody else's, and is only ended.
    """
    size = os.fstat(descriptor).st_size
    end = _end_of_lines(descriptor, size)
    if end == size:
        return
    torn = os.pread(descriptor, len(BEGINNING), end)
    if BEGINNING.startswith(torn):
        os.ftruncate(descriptor, end)
    else:
        _write_all(descriptor, b"\n")


def _end_of_lines(descriptor: int, size: int) -> int:
    end = size
    while end > 0:
        begin = max(end - PIECE, 0)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
