"""The outbox as senders use it: queries run in threads, and delivered messages are deleted in batches."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TypeVar, TypeVarTuple

from sqlalchemy import Connection, Engine

from api.database.database import write_transaction
from api.record.outbox_queries import move_delivered

Args = TypeVarTuple("Args")
T = TypeVar("T")
THREADS = 4
DELETE_INTERVAL_S = 0.05
"""Seconds between two transactions that delete, so that inspections can be stored in between."""


class OutboxStore:
    """Reads and changes the outbox."""

    def __init__(self, engine: Engine, delete_interval_s: float = DELETE_INTERVAL_S) -> None:
        self.engine, self._delete_interval_s = engine, delete_interval_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="outbox")
        self._delivered: list[int] = []
        self._deleting = asyncio.Lock()

    async def read(self, query: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """Runs a query in a thread and returns its result."""

        def run() -> T:
            with self.engine.connect() as connection:
                return query(connection, *args)

        return await self.run_in_thread(run)

    async def write(self, change: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """Runs a change in a thread, in one transaction, and returns its result."""

        def run() -> T:
            with write_transaction(self.engine) as connection:
                return change(connection, *args)

        return await self.run_in_thread(run)

    async def run_in_thread(self, function: Callable[[], T]) -> T:
        """Runs a slow function in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def mark_delivered(self, message_id: int) -> None:
        """Marks a message as delivered; `delete_delivered` deletes it."""
        self._delivered.append(message_id)

    async def delete_delivered(self) -> None:
        """Deletes all messages that were marked before the call; calls waiting together share a transaction.

        Raises:
            SQLAlchemyError: If that fails; the next call tries again.
        """
        async with self._deleting:
            taken, self._delivered = self._delivered, []
            if not taken:
                return
            try:
                await self.write(move_delivered, taken, datetime.now(UTC))
            except BaseException:
                self._delivered = taken + self._delivered
                raise
            await asyncio.sleep(self._delete_interval_s)

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown(wait=False)
