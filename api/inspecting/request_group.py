"""Several photographs of one request."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from api.inference.memory_budget import MemoryFullError

T = TypeVar("T")


class RequestGroup:
    """Inspects the photographs of one request.

    They wait for each other's memory instead of being refused: their client sent all of them in one request
    and cannot send some of them later.

    Args:
        limit: Maximum of photographs in progress, so that other requests are admitted at the same time.
    """

    def __init__(self, limit: int) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._running = 0
        self._ended = asyncio.Event()

    async def gather(self, works: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
        """Runs `works` and returns their results in order; the first failure cancels all others."""

        async def run(work: Callable[[], Awaitable[T]]) -> T:
            async with self._slots:
                return await work()

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run(work)) for work in works]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    async def run_when_memory_is_free(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs `work`; if the memory is full, runs it again whenever another photograph of the request ends.

        Raises:
            MemoryFullError: If no other photograph of the request could release memory.
        """
        while True:
            ended = self._ended
            self._running += 1
            waits = False
            try:
                return await work()
            except MemoryFullError:
                waits = self._running > 1 or ended.is_set()  # another one may have ended meanwhile
                if not waits:
                    raise
            finally:
                self._running -= 1
                if not waits:
                    self._ended.set()
                    self._ended = asyncio.Event()
            await ended.wait()
