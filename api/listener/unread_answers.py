"""Ends connections whose client does not read its answer, which would stay in memory."""

import asyncio
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
        unsent = self._transport.get_write_buffer_size()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._timeout_s, self._check, unsent)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self, unsent_before: int) -> None:
        if self._transport.get_write_buffer_size() < unsent_before:
            self.start()
        else:
            self._on_timeout()
