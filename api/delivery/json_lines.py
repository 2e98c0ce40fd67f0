"""Appends each event as a line to a file."""

import asyncio
import os
import threading
from contextlib import suppress
from pathlib import Path

from api.delivery.sink import DeliveryError, OutboxMessage
from segdec.runtime.files import fsync_folder

READ_BLOCK_BYTES = 64 * 1024
LINE_START = b'{"specversion":'
"""First bytes of every line."""


class JsonLines:
    """A file of complete lines. If it is moved away, as by logrotate, a new one is created.

    Args:
        path: Path of the file, in an existing folder.
    """

    name = "jsonl"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._lock = threading.Lock()

    async def deliver(self, message: OutboxMessage) -> None:
        """Appends the line and syncs it to disk.

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
                with suppress(OSError):  # otherwise `_repair` removes it at the next open
                    os.ftruncate(descriptor, end)
                self._close()
                raise

    def _open(self) -> int:
        """Returns the descriptor of the file that is at the path now."""
        if self._descriptor is not None and not self._is_there(self._descriptor):
            self._close()
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o640)
            _repair(self._descriptor)
            fsync_folder(self._path.parent)
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


def _repair(descriptor: int) -> None:
    """Removes an incomplete line after a crash; its event was not acknowledged and is sent again.

    Text that does not begin like an event is not ours; it only gets a line break.
    """
    size = os.fstat(descriptor).st_size
    end = _end_of_lines(descriptor, size)
    if end == size:
        return
    rest = os.pread(descriptor, len(LINE_START), end)
    if LINE_START.startswith(rest):
        os.ftruncate(descriptor, end)
    else:
        _write_all(descriptor, b"\n")


def _end_of_lines(descriptor: int, size: int) -> int:
    end = size
    while end > 0:
        begin = max(end - READ_BLOCK_BYTES, 0)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
