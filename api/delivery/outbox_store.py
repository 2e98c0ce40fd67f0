"""The outbox as senders use it: asked in threads, and emptied by few transactions."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine

from api.records.database import writing
from api.records.outbox_queries import delete_messages

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 4
DELETE_INTERVAL_S = 0.05
"""Seconds between two transactions that remove what was delivered: inspections are stored meanwhile."""


class OutboxStore:
    """Reads and changes the outbox.

    Args:
        engine: Of the record's database.
        breath_s: Seconds between two transactions that remove; default: BREATH_S.
    """

    def __init__(self, engine: Engine, delete_interval_s: float = DELETE_INTERVAL_S) -> None:
        self.engine, self._breath_s = engine, delete_interval_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="outbox")
        self._delivered: list[int] = []
        self._removing = asyncio.Lock()

    async def read(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Returns what `query` answers."""

        def ask() -> T:
            with self.engine.connect() as connection:
                return query(connection, *args, **kwargs)

        return await self.work(ask)

    async def write(
        self, change: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Returns what `change` answers, once it is committed."""

        def make() -> T:
            with writing(self.engine) as connection:
                return change(connection, *args, **kwargs)

        return await self.work(make)

    async def work(self, function: Callable[[], T]) -> T:
        """Does what is slow in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def mark_delivered(self, message_id: int) -> None:
        """Says that one was delivered; it is there until `delete_delivered`."""
        self._delivered.append(message_id)

    async def delete_delivered(self) -> None:
        """Returns when all that was said to be delivered before is removed.

        Whoever waits for another's transaction has his own in the next one, with everybody else's.

        Raises:
            SQLAlchemyError: If it cannot be removed now; the next call tries again.
        """
        async with self._removing:
            taken, self._delivered = self._delivered, []
            if not taken:
                return
            try:
                await self.write(delete_messages, taken)
            except BaseException:
                self._delivered = taken + self._delivered
                raise
            await asyncio.sleep(self._breath_s)

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown(wait=False)
