"""Limits the request bodies that are read at the same time; slow ones end if others need their place."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Self

from api.errors import RequestError, service_unavailable
from api.http.admission import ByteReservation

MIN_BYTES_PER_S = 2**16
"""A body that arrives more slowly may be ended."""
MAX_START_S, MAX_PAUSE_S = 0.05, 1.0
"""Time in which a body has to begin, and longest pause in it, before it counts as slow."""


class OpenUpload:
    """A request body that is being read, in a `with` block: its place, and its memory.

    Attributes:
        slow_at: Time from which it counts as slow, unless more bytes arrive.
        removed: Whether it lost its place to another one.
    """

    def __init__(self, uploads: "UploadLimit", client: str, memory: ByteReservation) -> None:
        self._uploads = uploads
        self._memory = memory
        self._timeout: asyncio.Timeout | None = None
        self.client = client
        self.slow_at = uploads.clock() + MAX_START_S
        self.removed = False

    def __enter__(self) -> Self:
        self._uploads.add(self)
        return self

    def __exit__(self, *failure: object) -> None:
        self._uploads.open.discard(self)

    def limit_time(self, seconds: float) -> asyncio.Timeout:
        """Returns a context manager that raises a TimeoutError after this time, or when it is removed."""
        self._timeout = asyncio.timeout(seconds)
        return self._timeout

    def receive(self, count: int) -> None:
        """Counts bytes that have arrived."""
        now = self._uploads.clock()
        self.slow_at = min(max(self.slow_at, now) + count / MIN_BYTES_PER_S, now + MAX_PAUSE_S)

    def check_memory(self, count: int) -> None:
        """Checks that memory for `count` bytes is free, and frees that of slow uploads for it.

        Raises:
            RequestError: 503, if the memory is full.
        """
        while not self._memory.fits(count) and self._uploads.remove_slowest(self._uploads.open - {self}):
            pass
        self._memory.check(count)

    def reserve_memory(self, count: int) -> None:
        """Reserves `count` more bytes; raises as `check_memory`."""
        self.check_memory(count)
        self._memory.add(count)

    def remove(self) -> None:
        """Releases its place and its memory, and ends the block of `limit_time`."""
        self.removed = True
        self._uploads.open.discard(self)
        self._memory.release()
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())


class UploadLimit:
    """Limits the number of bodies that are being read, in total and to half of it for each client.

    If there is no place, a new body replaces the slowest one: a client that sends one byte on each of many
    connections does not keep others out. If none is slow, the new one is rejected. Belongs to the event loop.

    Attributes:
        open: The bodies that are being read.
        total: Number of bodies since the start.
    """

    def __init__(self, limit: int, retry_after_s: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self.retry_after_s = retry_after_s
        self.clock = clock
        self.open: set[OpenUpload] = set()
        self.total = 0

    @property
    def admitted(self) -> int:
        return len(self.open)

    def add(self, upload: OpenUpload) -> None:
        """Adds a body.

        Raises:
            RequestError: 503 with Retry-After, if there is no place.
        """
        same_client = {other for other in self.open if other.client == upload.client}
        client_limit = max(self.limit // 2, 1)
        if len(same_client) >= client_limit and not self.remove_slowest(same_client):
            raise self._full(f"{client_limit} bodies of this client are being read")
        if len(self.open) >= self.limit and not self.remove_slowest(self.open):
            raise self._full(f"{self.limit} bodies are being read")
        self.open.add(upload)
        self.total += 1

    def remove_slowest(self, uploads: Iterable[OpenUpload]) -> bool:
        """Removes the one that has been slow for the longest time; returns whether there was a slow one."""
        slowest = min(uploads, key=lambda upload: upload.slow_at, default=None)
        if slowest is None or slowest.slow_at > self.clock():
            return False
        slowest.remove()
        return True

    def _full(self, what: str) -> RequestError:
        return service_unavailable(
            "uploads_full", f"{what}, which is the maximum. Retry later.", self.retry_after_s
        )
