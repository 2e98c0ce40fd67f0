"""Work for a client that has gone is given up."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")


async def until_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Does `work` unless the client goes first; the request's body must have been read.

    Raises:
        ClientDisconnect: If the client went; `work` was cancelled.
    """
    working = asyncio.current_task()
    departed = False

    async def watch() -> None:
        nonlocal departed
        while (await request.receive())["type"] != "http.disconnect":
            pass
        departed = True
        if working:
            working.cancel()

    watching = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if departed and working and not working.uncancel():
            raise ClientDisconnect from None
        raise
    finally:
        watching.cancel()
