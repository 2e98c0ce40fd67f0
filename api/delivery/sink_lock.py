"""A lock so that only one service sends to a sink, even if several share the record."""

import zlib

from sqlalchemy import Connection, Engine, text

from api.database.database import WRITE_LOCK

KEEPALIVE = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}
"""After 25 s without an answer PostgreSQL ends the session of a dead machine, and another service sends."""


class SinkLock:
    """A PostgreSQL advisory lock, which ends with its connection and thus with a killed service.

    With SQLite there is only one service, which always holds it. Losing the lock unnoticed only causes
    repeats: every sender starts with the oldest undelivered message.
    """

    def __init__(self, engine: Engine, sink: str) -> None:
        self._engine = engine
        self._numbers = {"class": WRITE_LOCK, "object": zlib.crc32(sink.encode()) >> 1}
        self._connection: Connection | None = None

    def acquire(self) -> bool:
        """Returns whether this service holds the lock; takes it if it is free.

        Raises:
            SQLAlchemyError: If the database does not answer; then the lock is lost.
        """
        if self._engine.dialect.name == "sqlite":
            return True
        if self._connection is not None:
            try:
                self._connection.execute(text("SELECT 1"))
            except BaseException:
                self.release()
                raise
            return True
        return self._take()

    def _take(self) -> bool:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            lock = text("SELECT pg_try_advisory_lock(:class, :object)")
            if connection.execute(lock, self._numbers).scalar():
                for name, value in KEEPALIVE.items():
                    connection.execute(text(f"SET {name} = {value}"))
                self._connection = connection
        finally:
            if self._connection is None:
                connection.close()
        return self._connection is not None

    def release(self) -> None:
        """Closes the connection; PostgreSQL releases the lock when it notices."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()
