"""One started process: whose lines are named, asked to stop once, ended for good, gone with its starter."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

PIPE_BYTES = 1 << 20
"""More than a pipe holds: one read empties it."""
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Task:
    """What to start.

    Attributes:
        name: What its lines begin with.
        command: Program and arguments.
        environment: Variables added to those of this process.
        server: Whether it only serves other tasks, and is stopped when they are done.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    server: bool = False


class PrefixedLines:
    """Turns chunks of bytes, cut anywhere and in any encoding, into lines with a prefix.

    Of a line that was rewritten after carriage returns only the last version is kept.

    Args:
        prefix: What stands before each line.
    """

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._begun = b""

    def feed(self, chunk: bytes) -> bytes:
        """Returns the lines that end within `chunk`; what comes after them is kept for later."""
        *lines, begun = (self._begun + chunk).split(b"\n")
        self._begun = _drop_rewritten(begun)
        return b"".join(self._prefix + _drop_rewritten(line).rstrip(b"\r") + b"\n" for line in lines)

    def finish(self) -> bytes:
        """Returns the last line, if no newline ended it."""
        return self.feed(b"\n") if self._begun else b""


class TaskProcess:
    """A started task, leader of a process group of its own. Linux ends it when its starter dies.

    Args:
        task: What to start. From a process with one thread: some code runs between fork and exec.
        prefix: What stands before each line of its output.

    Attributes:
        told: Whether it was asked to stop.
        killed: Whether it was ended by force.
        pipe: File descriptor of its output; None at its end.

    Raises:
        OSError: If it cannot be started.
    """

    def __init__(self, task: Task, prefix: bytes) -> None:
        self.name, self.server = task.name, task.server
        self.stop_requested, self.killed = False, False
        self._lines = PrefixedLines(prefix)
        self.pipe: int | None
        self.pipe, end = os.pipe()
        os.set_blocking(self.pipe, False)
        try:
            self._popen = subprocess.Popen(
                task.command,
                stdin=subprocess.DEVNULL,
                stdout=end,
                stderr=end,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **task.environment},
                process_group=0,  # Ctrl-C reaches it through its starter alone
                preexec_fn=_end_with_starter(),  # noqa: PLW1509 - one thread
            )
        except BaseException:
            self._close_pipe()
            raise
        finally:
            os.close(end)

    @property
    def code(self) -> int | None:
        """Exit code, −n after signal n, None as long as `poll` has not found it ended."""
        return self._popen.returncode

    def poll(self) -> bool:
        """Returns whether it has ended; what it started itself and left behind is then ended too."""
        if self._popen.poll() is None:
            return False
        self._signal(signal.SIGKILL)
        return True

    def terminate(self) -> None:
        """Asks it to stop, once: a second request would tell it to drop everything."""
        if not self.stop_requested:
            self.stop_requested = True
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it, whatever it does."""
        if self.code is None:
            self.killed = True
            self._signal(signal.SIGKILL)

    def read(self) -> bytes:
        """Returns the whole lines that have come."""
        if self.pipe is None:
            return b""
        try:
            chunk = os.read(self.pipe, PIPE_BYTES)
        except BlockingIOError:
            return b""
        if chunk:
            return self._lines.feed(chunk)
        self._close_pipe()
        return self._lines.finish()

    def close(self) -> bytes:
        """Waits for its end, which must be near; gives its last lines."""
        self._popen.wait()
        last = self.read() + self._lines.finish()
        self._close_pipe()
        return last

    def describe_end(self) -> str:
        """Says how it ended."""
        code = self.code or 0
        if code >= 0:
            return f"{self.name} left with exit code {code}"
        name = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
        return f"{self.name} {'did not stop in time and ' if self.killed else ''}was ended by {name}"

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS forbids signalling what has ended
            os.killpg(self._popen.pid, number)

    def _close_pipe(self) -> None:
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None


def _drop_rewritten(line: bytes) -> bytes:
    """`line` from after its last carriage return that has text behind it."""
    end = len(line.rstrip(b"\r"))
    return line[line.rfind(b"\r", 0, end) + 1 :]


def _end_with_starter() -> Callable[[], None] | None:
    """What a new process does before its program begins, so that the kernel ends it with its starter."""
    if sys.platform != "linux":
        return None
    starter, prctl = os.getpid(), ctypes.CDLL(None).prctl

    def arrange() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != starter:  # it died before this was arranged
            os.kill(os.getpid(), signal.SIGKILL)

    return arrange
