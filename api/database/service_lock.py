"""A lock so that only one service uses a SQLite record."""

import fcntl
import os
from pathlib import Path

from segdec.errors import ConfigError


class ServiceLock:
    """An exclusive lock on a file beside the database; it ends with the process, also with a killed one.

    Commands that only read the record need no lock.
    """

    def __init__(self, database: Path) -> None:
        self._database, self._path = database, database.with_name(f"{database.name}.lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Takes the lock, again if the folder was replaced since.

        Raises:
            ConfigError: If another service holds it.
            OSError: If the folder is missing or not writable.
        """
        if self._is_held():
            return
        self.release()
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise ConfigError(
                f"Another service uses the record {self._database}: it holds the lock {self._path.name}. "
                "Stop it, give each service its own --record-folder, or share a PostgreSQL database."
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _is_held(self) -> bool:
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except OSError:
            return False

    def release(self) -> None:
        """Releases the lock if it is held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None
