"""Deadlines of requests: the event loop enforces them, even while a thread still works."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.errors import RequestError


@asynccontextmanager
async def deadline_timeout(deadline: float) -> AsyncIterator[None]:
    """Cancels the body of the `with` statement at `deadline`, in seconds of `time.perf_counter`.

    Raises:
        RequestError: 504 at the deadline.
    """
    left_s = deadline - time.perf_counter()
    if left_s <= 0:
        raise deadline_error()
    try:
        async with asyncio.timeout(left_s) as timer:
            yield
    except TimeoutError:
        if not timer.expired():
            raise
        raise deadline_error() from None


def deadline_error() -> RequestError:
    """Returns the error for a request whose deadline has passed."""
    detail = (
        "The deadline passed before the photograph was inspected: upload, queue or inspection took too long. "
        "Send fewer photographs at a time, or allow more time with X-Deadline-Ms."
    )
    return RequestError(504, "deadline_passed", detail)
