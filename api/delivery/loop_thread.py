"""A thread with its own event loop that runs one coroutine until it is stopped."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any


class LoopThread:
    """The thread.

    `main` returns the coroutine, which must end soon after the event `stopping` is set; `on_error` gets its
    exception.
    """

    def __init__(
        self, name: str, main: Callable[[], Coroutine[Any, Any, None]], on_error: Callable[[Exception], None]
    ) -> None:
        self._main, self._on_error = main, on_error
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def close(self, limit_s: float) -> None:
        """Stops the thread and waits up to `limit_s`; does nothing if it was not started."""
        if self._loop is None:
            return
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.stopping.set)
        self._thread.join(limit_s)

    def _run(self) -> None:
        assert self._loop is not None
        loop = self._loop
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(self._main())
            except Exception as error:
                self._on_error(error)
