"""A thread with an event loop of its own, in which one coroutine runs until it is told to stop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any


class LoopThread:
    """The thread.

    Args:
        name: Of it.
        main: Makes the coroutine, which ends soon after `stopping` is set.
        fail: Told what the coroutine raises.

    Attributes:
        stopping: Is set when it shall end; belongs to the loop.
    """

    def __init__(
        self, name: str, main: Callable[[], Coroutine[Any, Any, None]], fail: Callable[[Exception], None]
    ) -> None:
        self._main, self._fail = main, fail
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begins."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def close(self, limit_s: float) -> None:
        """Ends it; what hangs for longer is left behind. One that was not started needs no end."""
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
                self._fail(error)
