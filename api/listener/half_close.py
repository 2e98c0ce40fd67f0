"""Distinguishes clients that have only finished sending from clients that have closed the connection.

In both cases the client has sent FIN. The difference appears only when the server sends data: a closed client
answers with a TCP reset. So the first bytes of the response, which are always the same, are sent at once.
"""

import asyncio
import select
from typing import Any

STATUS_LINE_START = b"HTTP/1.1 "
"""The first bytes of every response."""


class StartedResponseTransport:
    """A connection on which the first bytes of the response are sent before the response is known."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._is_first = True
        transport.write(STATUS_LINE_START)

    def write(self, data: bytes) -> None:
        if self._is_first:
            self._is_first = False
            data = data.removeprefix(STATUS_LINE_START)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def was_reset(transport: asyncio.Transport) -> bool:
    """Returns whether the client has closed the connection in both directions."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), 0)  # errors are always reported
    return bool(poll.poll(0))
