"""Unpacked archives of imports with questions, until somebody answers them."""

import asyncio
import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from api.errors import RequestError

STORAGE_TIME = timedelta(hours=24)
"""An archive is deleted after this time."""
DELETE_INTERVAL_S = 600.0


class UnansweredArchives:
    """Unpacked archives in `folder`, by data set and import.

    The newest ones with at most `max_bytes` together are stored, for `STORAGE_TIME`.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._max_bytes = folder, max_bytes

    def add(self, data_set_id: int, import_id: int, unpacked: Path, now: datetime) -> None:
        """Moves the unpacked archive of an import here; raises OSError if that is not possible."""
        path = self._path(data_set_id, import_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.utime(unpacked, (now.timestamp(), now.timestamp()))
        unpacked.rename(path)
        self.delete_old(now)

    def take(self, data_set_id: int, import_id: int, target: Path) -> None:
        """Moves the archive of an import to `target`; RequestError 409 if there is none."""
        try:
            self._path(data_set_id, import_id).rename(target)
        except FileNotFoundError:
            hours = STORAGE_TIME / timedelta(hours=1)
            detail = (
                "The import {number} has no open question, or its archive was deleted: somebody has "
                "answered, {hours:g} hours have passed, or newer archives needed its space. Send the archive "
                "again."
            )
            raise RequestError(409, "archive_deleted", detail, number=import_id, hours=hours) from None

    def delete_data_set(self, data_set_id: int) -> None:
        """Deletes the archives of a data set."""
        shutil.rmtree(self._folder / str(data_set_id), ignore_errors=True)

    def answerable_until(self, data_set_id: int, import_id: int) -> datetime | None:
        """Returns when the archive of an import will be deleted; None if there is none."""
        try:
            added = self._path(data_set_id, import_id).stat().st_mtime
        except OSError:
            return None
        return datetime.fromtimestamp(added, UTC) + STORAGE_TIME

    async def delete_old_regularly(self) -> None:
        """Calls `delete_old` until it is cancelled."""
        while True:
            await asyncio.to_thread(self.delete_old, datetime.now(UTC))
            await asyncio.sleep(DELETE_INTERVAL_S)

    def delete_old(self, now: datetime) -> None:
        """Deletes archives that are too old, or that have too many bytes with those after them."""
        stored = []
        for path in self._folder.glob("*/*"):
            with suppress(OSError):  # it was just taken
                stored.append((path.stat().st_mtime, path))
        total = 0
        for added, path in sorted(stored, reverse=True):
            total += _count_bytes(path)
            if total > self._max_bytes or added < (now - STORAGE_TIME).timestamp():
                _delete(path)

    def _path(self, data_set_id: int, import_id: int) -> Path:
        return self._folder / str(data_set_id) / str(import_id)


def _delete(folder: Path) -> None:
    """Renames a folder before its files are deleted: whoever takes an archive gets all of it."""
    with suppress(OSError):  # it was just taken
        shutil.rmtree(folder.rename(folder.with_suffix(".deleted")), ignore_errors=True)


def _count_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # it was just taken
            total += path.lstat().st_size * path.is_file()
    return total
