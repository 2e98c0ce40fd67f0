"""Ends connections whose client does not read its answer, which would stay in memory."""

import array
import asyncio
import fcntl
import termios
from collections.abc import Callable


class ReadingCheck:
    """Calls `on_timeout` if, between `start` and `stop`, the client reads nothing for `timeout_s`."""

    def __init__(
        self, transport: asyncio.Transport, timeout_s: float, on_timeout: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._on_timeout = on_timeout
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._timeout_s, self._check, self.unread_bytes())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self, unread_before: int) -> None:
        if self.unread_bytes() < unread_before:
            self.start()
        else:
            self._on_timeout()

    def unread_bytes(self) -> int:
        """Returns the bytes that the client has not acknowledged, in the process and in the kernel.

        The kernel takes more only after megabytes were read, which takes a slow client minutes.
        """
        queued = array.array("i", [0])
        fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)
        return self._transport.get_write_buffer_size() + queued[0]
