"""Finds the event at which a broker ends the connection that all stations share.

A broker of MQTT 3.1.1 can only end the connection of a client that sends something it does not accept; those
of MQTT 5 often do. Events that were in flight then are sent again alone, so that the next end has one cause.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from api.delivery.mqtt_connection import MAX_IN_FLIGHT, ConnectionLostError
from api.delivery.sink import DeliveryError

MAX_ENDS = 3
"""Ends of the connection while an event was alone in flight, after which it is given up."""
MAX_SUSPECTS = 1000
ISOLATED_TIMEOUT_S = 10.0
"""Seconds in which an event that is sent alone must be acknowledged: all others wait."""


@dataclass
class _Suspect:
    """An event that was in flight when the connection ended; `acknowledged`: events before that."""

    acknowledged: int
    ends: int = 0


class EventIsolation:
    """Publishes events of several stations at the same time, and suspects alone."""

    def __init__(self) -> None:
        self._slots, self._alone = asyncio.Semaphore(MAX_IN_FLIGHT), asyncio.Lock()
        self._suspects: dict[str, _Suspect] = {}
        self._acknowledged = 0

    async def deliver(self, event_id: str, publish: Callable[[float | None], Awaitable[None]]) -> None:
        """Awaits `publish`, which publishes an event within the given seconds (None: without limit).

        Raises:
            DeliveryError: `refused` if the broker ends the connection at this event only, `failed` while that
                is not certain.
        """
        suspect = self._suspects.get(event_id)
        async with self._turn(alone=suspect is not None):
            try:
                await publish(None if suspect is None else ISOLATED_TIMEOUT_S)
            except (ConnectionLostError, TimeoutError, asyncio.CancelledError) as error:
                if suspect is None:
                    self._add(event_id)
                    raise
                if isinstance(error, asyncio.CancelledError):
                    raise
                raise self._blame(event_id, suspect, error) from error
        self._acknowledged += 1
        self._suspects.pop(event_id, None)

    @asynccontextmanager
    async def _turn(self, *, alone: bool) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if alone:
                await stack.enter_async_context(self._alone)
            for _ in range(MAX_IN_FLIGHT if alone else 1):
                await stack.enter_async_context(self._slots)
            yield

    def _add(self, event_id: str) -> None:
        self._suspects[event_id] = _Suspect(self._acknowledged)
        if len(self._suspects) > MAX_SUSPECTS:
            del self._suspects[next(iter(self._suspects))]

    def _blame(self, event_id: str, suspect: _Suspect, error: Exception) -> DeliveryError:
        suspect.ends += 1
        cause = error or f"no answer in {ISOLATED_TIMEOUT_S:g} s"
        reason = f"the broker ends the connection at this event ({cause})"
        works = self._acknowledged > suspect.acknowledged  # the broker accepts other events meanwhile
        names_event = isinstance(error, ConnectionLostError) and error.names_event
        if names_event or (works and suspect.ends >= MAX_ENDS):
            del self._suspects[event_id]
            return DeliveryError(reason, "refused")
        return DeliveryError(reason, "failed")
