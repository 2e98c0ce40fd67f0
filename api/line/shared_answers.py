"""Shares answers between the many screens that ask for the same status every second."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

MAX_AGE_S = 0.5
"""Age up to which an answer is shared: another replica may have changed the record meanwhile."""


@dataclass(frozen=True)
class _Answer:
    reading: "asyncio.Task[bytes]"
    begun: float
    changes: int


class SharedAnswers:
    """Reads an answer once for all who ask for it at about the same time.

    Args:
        read: Reads the answer for a station; None = all stations.
        count_changes: Returns the number of changes that this process has made; a change ends the sharing.
        clock: Monotonic clock, seconds.
    """

    def __init__(
        self,
        read: Callable[[str | None], Awaitable[bytes]],
        count_changes: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._count_changes, self._clock = read, count_changes, clock
        self._answers: dict[str | None, _Answer] = {}

    async def get(self, station: str | None) -> bytes:
        """Returns the answer for a station. Raises as `read`."""
        now, changes = self._clock(), self._count_changes()
        known = self._answers.get(station)
        if known is None or known.changes != changes or now - known.begun > MAX_AGE_S:
            self._remove_old(now)
            known = _Answer(asyncio.ensure_future(self._run(station)), now, changes)
            self._answers[station] = known
        return await asyncio.shield(known.reading)  # a screen that leaves does not stop the others' reading

    async def _run(self, station: str | None) -> bytes:
        return await self._read(station)

    def _remove_old(self, now: float) -> None:
        old = [name for name, answer in self._answers.items() if now - answer.begun > MAX_AGE_S]
        for name in old:
            del self._answers[name]
