"""What ends a run early: SIGTERM and SIGINT, acted upon between two steps, and the loss of a process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from segdec.errors import RunError
from segdec.runtime.cli import EXIT_INTERRUPTED

EXIT_CODES = {signal.SIGTERM: 75, signal.SIGINT: EXIT_INTERRUPTED}
"""75 is EX_TEMPFAIL of sysexits.h: try again."""

EXIT_PEER_LOST = 69
"""EX_UNAVAILABLE of sysexits.h: something the program needs is not there."""


class RunInterruptedError(RunError):
    """A run was asked to stop, and stopped with a checkpoint.

    Args:
        received: The signal.
        place: Where the run stopped.
    """

    def __init__(self, received: signal.Signals, place: str) -> None:
        super().__init__(f"Stopped by {received.name} {place}. A checkpoint holds everything so far.")
        self.exit_code = EXIT_CODES[received]


class PeerLostError(RunError):
    """Another process of the cluster is not there.

    Args:
        reason: Which one, or what TensorFlow saw.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The cluster is not whole: {reason}. Start all of its processes again; "
            "a run that had begun goes on from its last checkpoint."
        )
        self.exit_code = EXIT_PEER_LOST


class Terminated(KeyboardInterrupt):
    """SIGTERM, where it ends what is being done as an interrupt does."""

    exit_code = EXIT_CODES[signal.SIGTERM]


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Within the block SIGTERM raises `Terminated`, unless something within takes note of it itself."""

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
    """Gives Python its handlers back: TensorFlow's synchronous cluster takes SIGTERM, and drops it."""
    if threading.current_thread() is threading.main_thread():
        for number in EXIT_CODES:
            signal.signal(number, signal.getsignal(number))


class Interruption:
    """Within the block, a first signal is noted; a second one acts as it would without the block.

    In another thread than the main one, which alone may set signal handlers, it notes nothing.

    Attributes:
        received: The signal that came, or None.
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
