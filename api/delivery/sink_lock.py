"""One service at a time sends to a sink, however many share the record."""

import zlib

from sqlalchemy import Connection, Engine, text

from api.records.database import WRITE_LOCK

KEEPALIVE = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}
"""After 25 s without a word the server knows that a machine is gone, and another service takes over."""


class SinkLock:
    """A lock of PostgreSQL that goes with its connection, and so with a service that is killed.

    SQLite is for one service, which has it always. A lease that is lost unnoticed costs repeats alone:
    whoever sends, sends in order, from what nobody has delivered yet.

    Args:
        engine: Of the record's database.
        sink: For which one.
    """

    def __init__(self, engine: Engine, sink: str) -> None:
        self._engine = engine
        self._numbers = {"class": WRITE_LOCK, "object": zlib.crc32(sink.encode()) >> 1}
        self._connection: Connection | None = None

    def acquire(self) -> bool:
        """Returns whether this service may send; takes the lease if it is free.

        Raises:
            SQLAlchemyError: If the database does not answer; then the lease is lost.
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
        """Lets another service send: the connection is closed, and its lock goes with it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()
