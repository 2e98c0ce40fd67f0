"""Detects that the files of an open SQLite database were removed or replaced.

SQLite does not: it continues to write into files without a name, whose content is lost when they are closed.
"""

import logging
import os
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError

from api.database.service_lock import ServiceLock
from api.database.write_ahead_log import has_lost_commits
from segdec.errors import ConfigError

INFO = "files"
"""Key of the ids of a connection's open files."""
FileId = tuple[int, int]
"""Device and inode."""

logger = logging.getLogger(__name__)


class DatabaseReplacedError(SQLAlchemyError):
    """The database at the path is not the one that was opened."""


def _file_id(path: str | Path) -> FileId | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # faster; it runs in each transaction
    except OSError:
        return None
    return status.st_dev, status.st_ino


class DatabaseFiles:
    """Checks the files of all connections of an engine: the database, its WAL and the index of the WAL.

    After a change, no connection is opened before all others are closed: SQLite shares the index of the WAL
    between the connections of a process, also if they have different WALs open.

    Attributes:
        record_id: The only record that new connections accept; None = any.
    """

    def __init__(self, path: Path) -> None:
        self.record_id: str | None = None
        self._path, self._lock = path, ServiceLock(path)
        self._is_locked = False
        self._wal: tuple[str, FileId | None] = "", None
        self._wal_bytes = 0
        """Size of the WAL when it was last checked; it grows, or is emptied by a checkpoint."""
        self._intact: tuple[int, ...] = ()
        """Id, size and time of the database when it was last checked."""
        self._stale = self._cut_off = False
        self._open: dict[int, sqlite3.Connection] = {}
        self._used: set[int] = set()
        """Those of the open connections that are not idle in the pool."""
        self._changing = threading.Lock()

    def watch(self, engine: Engine) -> None:
        """Starts to check the connections of the engine."""
        event.listen(engine, "do_connect", self._before_connect)
        event.listen(engine, "connect", self._check_new)
        event.listen(engine, "checkout", self._note_used)
        event.listen(engine, "checkin", self._note_idle)
        event.listen(engine, "close", self._note_closed)

    def lock(self) -> None:
        """Makes this process the only service that uses the database, until `unlock`. Raises as `acquire`."""
        self._lock.acquire()
        self._is_locked = True

    def unlock(self) -> None:
        """Lets other services use the database."""
        self._is_locked, self.record_id = False, None
        self._lock.release()

    def is_new(self) -> bool:
        """Returns whether the file is missing or empty."""
        return not self._path.exists() or self._path.stat().st_size == 0

    def create(self) -> None:
        """Creates an empty database if the file is missing; connections do not create it."""
        with suppress(FileExistsError):
            self._path.touch(exist_ok=False)

    def note_opened(self, connection: sqlite3.Connection, info: dict[Any, Any]) -> None:
        """Notes the files of a new connection, whose PRAGMAs are set."""
        connection.execute("SELECT 1 FROM sqlite_schema").close()  # opens the WAL
        actual = os.path.realpath(self._path)  # SQLite keeps the other files beside the target of a link
        names = str(self._path), f"{actual}-wal", f"{actual}-shm"
        info[INFO] = {name: _file_id(name) for name in names}
        with self._changing:
            if not self._open:
                self._wal_bytes = 0
            self._wal = names[1], info[INFO][names[1]]
            self._open[id(connection)] = connection
            self._used.add(id(connection))

    def check(self, connection: Connection) -> None:
        """Checks the files of a connection outside of a transaction.

        Raises:
            DatabaseReplacedError: If one was removed, replaced or cut off. All connections are closed.
        """
        has_database = self._has_database(connection.info[INFO][str(self._path)])
        known = connection.info[INFO].items()
        missing = [name for name, found in known if found is not None and _file_id(name) != found]
        if not missing and not self._has_wal(connection):
            missing = [self._wal[0]]
        if has_database and not missing and not self._stale:
            return
        message = f"{next(iter(missing), self._path)} was removed, replaced or cut off while it was open"
        if not self._stale:
            logger.error("%s. Restore it, or restart the service", message)
        self._stale = True
        if has_database:  # it is complete only with the commits in the removed WAL
            with suppress(sqlite3.Error), closing(_driver(connection).cursor()) as cursor:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.invalidate()
        self._close_idle()
        raise DatabaseReplacedError(message)

    def _close_idle(self) -> None:
        with self._changing:
            for key in self._open.keys() - self._used:
                self._open.pop(key).close()

    def _has_database(self, known: FileId | None) -> bool:
        """Returns whether the database at the path is the open one, and not cut off."""
        try:
            status = self._path.stat()
        except OSError:
            return False
        if (status.st_dev, status.st_ino) != known:
            return False
        if status.st_size == 0 and self._intact:
            self._cut_off = True
            return False
        self._intact = _fingerprint(status) if status.st_size else ()
        return True

    def _has_wal(self, connection: Connection) -> bool:
        """Returns whether no commit was cut off the WAL; a checkpoint of another program may empty it."""
        try:
            size = os.stat(self._wal[0]).st_size  # noqa: PTH116
            if size < self._wal_bytes:
                with closing(_driver(connection).cursor()) as cursor:
                    cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except (OSError, sqlite3.Error):
            self._cut_off = True
            return False
        self._wal_bytes = size
        return True

    def _before_connect(self, _dialect: object, _record: object, arguments: Any, options: Any) -> None:
        with self._changing:
            if self._stale:
                self._check_stale()
            if not self._open:
                self._check_log()
            self._stale = False
        arguments[0], options["uri"] = f"{self._path.absolute().as_uri()}?mode=rw", True

    def _check_stale(self) -> None:
        """Rejects a connection while others are open, or to a new database beside the former WAL."""
        if self._open:
            raise DatabaseReplacedError(f"Connections to the former file {self._path} are still in use")
        name, known = self._wal
        if known is None or _file_id(name) != known or self._cut_off:
            return
        if self._path.exists() and _fingerprint(self._path.stat()) != self._intact:
            raise DatabaseReplacedError(
                f"{self._path} was replaced, but {name} belongs to the former file. Put the former file "
                f"back, or delete {name} and the file that ends with -shm"
            )

    def _check_log(self) -> None:
        """Rejects the first connection if the WAL has lost commits: SQLite would continue without them."""
        if has_lost_commits(name := os.path.realpath(self._path)):
            raise DatabaseReplacedError(
                f"{name}-wal was removed, replaced or cut off: the last commits are missing. Put it back, or "
                f"restore a backup (docs/record.md). To continue without these commits, delete {name}-shm"
            )

    def _check_new(self, connection: sqlite3.Connection, _: object) -> None:
        """Rejects a connection to another record, to a corrupted one, or to one of another service."""
        try:
            if (expected := self.record_id) is not None:
                self._check_record(connection, expected)
            if self._is_locked:
                self._lock.acquire()
        except ConfigError as error:
            connection.close()
            raise DatabaseReplacedError(str(error)) from error
        except BaseException:
            connection.close()
            raise

    def _check_record(self, connection: sqlite3.Connection, expected: str) -> None:
        if self._cut_off and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("database disk image is malformed")
        try:
            stored = connection.execute("SELECT id FROM store").fetchone()
        except sqlite3.OperationalError:  # there is no such table
            stored = None
        if stored != (expected,):
            raise DatabaseReplacedError(
                f"{self._path} contains {'no record' if stored is None else f'the record {stored[0]}'}, "
                f"expected {expected}. Restore it, or restart the service"
            )
        self._cut_off = False

    def _note_used(self, connection: sqlite3.Connection, _record: object, _proxy: object) -> None:
        with self._changing:
            if id(connection) not in self._open:
                raise DisconnectionError  # it was closed while it was idle: the pool opens another one
            self._used.add(id(connection))

    def _note_idle(self, connection: sqlite3.Connection, record: Any) -> None:
        with self._changing:
            self._used.discard(id(connection))
            is_stale = self._stale
        if is_stale:
            record.invalidate()

    def _note_closed(self, connection: sqlite3.Connection, _: object) -> None:
        with self._changing:
            self._used.discard(id(connection))
            self._open.pop(id(connection), None)


def _fingerprint(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


def files_of(engine: Engine | Connection) -> DatabaseFiles | None:
    """Returns the files of a SQLite database; None for another one."""
    files: DatabaseFiles | None = engine.get_execution_options().get(INFO)
    return files
