"""Until when a request is answered: kept by the event loop, whatever the threads do."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.errors import RequestError


@asynccontextmanager
async def deadline_timeout(deadline: float) -> AsyncIterator[None]:
    """Ends the block at `deadline`, `time.perf_counter`.

    Raises:
        RequestError: 504 at the deadline; what the block awaited was cancelled.
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
    """Returns what is answered in place of an inspection that comes too late."""
    return RequestError(
        504,
        "deadline_passed",
        "The deadline passed before the photograph was inspected: it came slowly, waited, or takes too long. "
        "Send fewer at a time, or allow more time with X-Deadline-Ms.",
    )
