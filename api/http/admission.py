"""Limits the number and the total size of concurrent requests, and cancels a request when its client
disconnects.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from starlette.requests import ClientDisconnect, Request

from api.errors import service_unavailable

T = TypeVar("T")

DISCONNECT_CHECK_DELAY_S = 0.05
"""The connection is watched only after this time: most requests are answered before."""

BODY_COPIES = 2
"""Copies of a body in memory while it is read: its chunks and the whole."""
JSON_BODY_COPIES = 4
"""Copies of a JSON body in memory: additionally its text and the decoded file."""


class AdmissionLimit:
    """Limits the number of concurrent items, for example requests; above the limit, an item is rejected
    immediately instead of waiting.

    Each `with` statement counts as one item. Only the event loop's thread may use it.

    Args:
        code: Code of the refusal.
        what: What the message says after the number, for example `photographs are waiting or running`.

    Attributes:
        admitted: Number of items that are admitted now.
        total: Number of admissions since the start.
    """

    def __init__(self, limit: int, code: str, what: str, retry_after_s: int) -> None:
        self.limit = limit
        self.code = code
        self.what = what
        self.retry_after_s = retry_after_s
        self.admitted = 0
        self.total = 0

    def check(self) -> None:
        """Checks whether one more can be admitted.

        Raises:
            RequestError: 503 with Retry-After.
        """
        if self.admitted >= self.limit:
            detail = f"{self.admitted} {self.what}, which is the maximum. Retry later."
            raise service_unavailable(self.code, detail, self.retry_after_s)

    def __enter__(self) -> Self:
        self.check()
        self.admitted += 1
        self.total += 1
        return self

    def __exit__(self, *failure: object) -> None:
        self.admitted -= 1


class ByteLimit:
    """Limits the memory of request bodies: at most `limit` bytes are reserved. Only the event loop's thread
    may use it.
    """

    def __init__(self, limit: int, retry_after_s: int) -> None:
        self.limit = limit
        self.retry_after_s = retry_after_s
        self.reserved = 0

    def reserve(self) -> "ByteReservation":
        """Returns a context manager that, at its end, releases the bytes that `add` has reserved."""
        return ByteReservation(self)


class ByteReservation:
    """The bytes that one request has reserved of a `ByteLimit`, until the block ends."""

    def __init__(self, limit: ByteLimit) -> None:
        self._limit = limit
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.release()

    def release(self) -> None:
        """Releases what has been reserved."""
        self._limit.reserved -= self.count
        self.count = 0

    def fits(self, count: int) -> bool:
        """Returns whether `count` more bytes can be reserved."""
        return self._limit.reserved + count <= self._limit.limit

    def check(self, count: int) -> None:
        """Checks whether `count` more bytes can be reserved.

        Raises:
            RequestError: 503 with Retry-After.
        """
        limit = self._limit
        if not self.fits(count):
            raise service_unavailable(
                "uploads_full",
                f"The request bodies in progress take {limit.reserved:,} bytes; this one exceeds the limit "
                f"of {limit.limit:,}. Retry later.",
                limit.retry_after_s,
            )

    def add(self, count: int) -> None:
        """Reserves `count` more bytes; raises as `check`."""
        self.check(count)
        self._limit.reserved += count
        self.count += count


async def cancel_on_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Awaits `work` and cancels it if the client disconnects; the request's body must have been read.

    Raises:
        ClientDisconnect: If the client disconnected; `work` was cancelled.
    """
    working, loop = asyncio.current_task(), asyncio.get_running_loop()
    watching: asyncio.Task[None] | None = None
    disconnected = False

    async def watch() -> None:
        nonlocal disconnected
        while (await request.receive())["type"] != "http.disconnect":
            pass
        disconnected = True
        if working:
            working.cancel()

    def begin_to_watch() -> None:
        nonlocal watching
        watching = loop.create_task(watch())

    timer = loop.call_later(DISCONNECT_CHECK_DELAY_S, begin_to_watch)
    try:
        return await work
    except asyncio.CancelledError:
        if disconnected and working and not working.uncancel():
            raise ClientDisconnect from None
        raise
    finally:
        timer.cancel()
        if watching is not None:
            watching.cancel()
