"""Which requests are worked on: no more than a bound at a time, and only while their client is there."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from starlette.requests import ClientDisconnect, Request

from api.errors import service_unavailable

T = TypeVar("T")

DISCONNECT_CHECK_DELAY_S = 0.05
"""Seconds after which it is looked whether a client is still there: most have their answer before."""


class AdmissionLimit:
    """Bounds what is admitted at a time; what is beyond is refused at once instead of waiting without end.

    Each block of a `with` statement admits one more. Only the event loop's thread may use it.

    Args:
        limit: How many are admitted at a time.
        code: Of the refusal.
        what: What is admitted, in words, for example `photographs are waiting or running`.
        retry_after_s: Seconds that a refused client is asked to wait.

    Attributes:
        admitted: How many are admitted now.
        total: How many have been since the start.
    """

    def __init__(self, limit: int, code: str, what: str, retry_after_s: int) -> None:
        self.limit = limit
        self.code = code
        self.what = what
        self.retry_after_s = retry_after_s
        self.admitted = 0
        self.total = 0

    def check(self) -> None:
        """Refuses while as many are admitted as may be.

        Raises:
            RequestError: 503 with Retry-After.
        """
        if self.admitted >= self.limit:
            raise service_unavailable(
                self.code,
                f"{self.admitted} {self.what}, the most this service takes. Retry later.",
                self.retry_after_s,
            )

    def __enter__(self) -> Self:
        """Admits one.

        Raises:
            RequestError: 503 with Retry-After, if as many are admitted as may be.
        """
        self.check()
        self.admitted += 1
        self.total += 1
        return self

    def __exit__(self, *failure: object) -> None:
        """Lets it go."""
        self.admitted -= 1


class ByteLimit:
    """Bounds the memory of what is held at a time. Only the event loop's thread may use it.

    Args:
        limit: Bytes that are held at most.
        retry_after_s: Seconds that a refused client is asked to wait.

    Attributes:
        held: Bytes that are held now.
    """

    def __init__(self, limit: int, retry_after_s: int) -> None:
        self.limit = limit
        self.retry_after_s = retry_after_s
        self.reserved = 0

    def reserve(self) -> "ByteReservation":
        """Returns the block that holds what is added in it, until it ends."""
        return ByteReservation(self)


class ByteReservation:
    """What one request holds of a `ByteLimit` until the block ends."""

    def __init__(self, limit: ByteLimit) -> None:
        self._limit = limit
        self.count = 0

    def __enter__(self) -> Self:
        """Holds nothing yet."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Holds nothing any more."""
        self._limit.reserved -= self.count

    def add(self, count: int) -> None:
        """Holds `count` bytes more.

        Raises:
            RequestError: 503 with Retry-After, if there would be too many.
        """
        limit = self._limit
        if limit.reserved + count > limit.limit:
            raise service_unavailable(
                "uploads_full",
                f"The bodies that are being worked on take {limit.reserved:,} bytes; with this one it would be "
                f"more than the {limit.limit:,} that are kept for them. Retry later.",
                limit.retry_after_s,
            )
        limit.reserved += count
        self.count += count


async def cancel_on_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Does `work` unless the client goes first; the request's body must have been read.

    Raises:
        ClientDisconnect: If the client went; `work` was cancelled.
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
