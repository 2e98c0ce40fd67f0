"""Early ends of a run: SIGTERM and SIGINT, handled between two steps, and the loss of a process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from segdec.errors import RunError
from segdec.runtime.cli import EXIT_INTERRUPTED

EXIT_CODES = {signal.SIGTERM: 75, signal.SIGINT: EXIT_INTERRUPTED}
"""75 is EX_TEMPFAIL of sysexits.h: retry."""

EXIT_PEER_LOST = 69
"""EX_UNAVAILABLE of sysexits.h: a required service is missing."""


class RunInterruptedError(RunError):
    """A run was stopped by a signal after a step or stage, and has saved a checkpoint."""

    def __init__(self, received: signal.Signals, position: str) -> None:
        super().__init__(f"Stopped by {received.name} {position}. The checkpoint is complete.")
        self.received, self.exit_code = received, EXIT_CODES[received]


class PeerLostError(RunError):
    """Another process of the cluster is missing or was lost."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The cluster is incomplete: {reason}. Restart all of its processes; the run resumes from its "
            "last checkpoint."
        )
        self.exit_code = EXIT_PEER_LOST


class Terminated(KeyboardInterrupt):
    """SIGTERM as an exception, like KeyboardInterrupt."""

    exit_code = EXIT_CODES[signal.SIGTERM]


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Raises `Terminated` on SIGTERM within the block, unless an inner handler replaces this one."""

    def end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def restore_signal_handlers() -> None:
    """Restores Python's handlers after TensorFlow has replaced that of SIGTERM by one that ignores it."""
    if threading.current_thread() is threading.main_thread():
        for number in EXIT_CODES:
            signal.signal(number, signal.getsignal(number))


class Interruption:
    """Records the first signal within the block in `received`; a second one has its usual effect.

    Only the main thread can set signal handlers; in other threads nothing is recorded.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self.received = None
        if threading.current_thread() is threading.main_thread():
            self._former = {number: signal.signal(number, self._note) for number in EXIT_CODES}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.received = signal.Signals(number)
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former = {}
