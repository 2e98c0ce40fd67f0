"""Appends each event as a line to a file."""

import asyncio
import mmap
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from api.delivery.settings import JsonLinesSettings
from api.delivery.sink import DeliveryError, OutboxMessage
from segdec.errors import ConfigError
from segdec.runtime.files import fsync_folder

LINE_START = b'{"specversion":'
"""First bytes of every line."""


class JsonLines:
    """A file of complete lines in an existing folder; if logrotate moves it, a new one is created."""

    name = "jsonl"
    remark = ""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._lock = threading.Lock()

    @classmethod
    def from_settings(cls, settings: JsonLinesSettings) -> Self | None:
        path = settings.outbox_jsonl
        if path is None:
            return None
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise ConfigError(f"--outbox-jsonl {path} cannot be used. Expected a file in an existing folder.")
        return cls(path.absolute())

    async def deliver(self, message: OutboxMessage) -> None:
        line = message.event.encode() + b"\n"
        try:
            await asyncio.to_thread(self._append, line)
        except OSError as error:
            raise DeliveryError(f"{error.strerror or error}", "unreachable") from error

    async def close(self) -> None:
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
    if os.fstat(descriptor).st_size == 0:
        return
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as written:
        end = written.rfind(b"\n") + 1
        rest = written[end : end + len(LINE_START)]
    if not rest:
        return
    if LINE_START.startswith(rest):
        os.ftruncate(descriptor, end)
    else:
        _write_all(descriptor, b"\n")
