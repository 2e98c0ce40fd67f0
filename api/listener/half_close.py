"""Clients that have ended their sending: one that waits for its answer is told from one that has gone.

Both have sent the end of the stream, and nothing else tells them apart until something is sent to them: the
system of one that has gone answers with a reset. So the beginning of the answer is sent at once, which is
the same for every answer. A client that waits sees an answer like any other.
"""

import asyncio
import select
from typing import Any

STATUS_LINE_START = b"HTTP/1.1 "
"""With this every answer begins."""


class StartedResponseTransport:
    """A connection on which the beginning of the answer is sent before it is known.

    Args:
        transport: The connection; no byte of the answer has been written.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._begun = True
        transport.write(STATUS_LINE_START)

    def write(self, data: bytes) -> None:
        """Writes what follows."""
        if self._begun:
            self._begun = False
            data = data.removeprefix(STATUS_LINE_START)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        """Does all else on the connection itself."""
        return getattr(self._transport, name)


def was_reset(transport: asyncio.Transport) -> bool:
    """Returns whether the other side has ended the connection for both directions."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), 0)  # errors are always told
    return bool(poll.poll(0))
