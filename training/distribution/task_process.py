"""One child process: its output lines are prefixed, and it ends with its parent."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PIPE_BYTES = 1 << 20
"""Larger than a pipe's buffer: one read empties it."""

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Task:
    """A command to run, with additional environment variables, in a folder (None: that of this process); a
    server is stopped after all other tasks.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    server: bool = False
    folder: Path | None = None


class PrefixedLines:
    """Converts chunks of bytes in any encoding to lines with a prefix.

    Only the last version of a line with carriage returns is kept.
    """

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._begun = b""

    def feed(self, chunk: bytes) -> bytes:
        """Returns the lines that end in `chunk`; the remainder is buffered."""
        *lines, begun = (self._begun + chunk).split(b"\n")
        self._begun = _drop_rewritten(begun)
        return b"".join(self._prefix + _drop_rewritten(line).rstrip(b"\r") + b"\n" for line in lines)

    def finish(self) -> bytes:
        """Returns the last line if it has no newline."""
        return self.feed(b"\n") if self._begun else b""


class TaskProcess:
    """A started task in its own process group; `prefix` begins each line. Linux kills it with its parent.

    The parent must have one thread: some code runs between fork and exec. `pipe` is the file descriptor of
    the output, None after its end. Raises an `OSError` if it cannot be started.
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
                cwd=task.folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **task.environment},
                process_group=0,  # Ctrl-C reaches only the parent
                preexec_fn=_end_with_parent(),  # noqa: PLW1509 - one thread
            )
        except BaseException:
            self._close_pipe()
            raise
        finally:
            os.close(end)

    @property
    def code(self) -> int | None:
        """Exit code, −n after signal n, None while it runs."""
        return self._popen.returncode

    def poll(self) -> bool:
        """Returns whether it has ended; its remaining children are then killed."""
        if self._popen.poll() is None:
            return False
        self._signal(signal.SIGKILL)
        return True

    def terminate(self) -> None:
        """Sends SIGTERM once: a second one would stop it without saving."""
        if not self.stop_requested:
            self.stop_requested = True
            self._signal(signal.SIGTERM)

    def interrupt(self) -> None:
        """Sends SIGINT, as Ctrl-C does."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        if self.code is None:
            self.killed = True
            self._signal(signal.SIGKILL)

    def read(self) -> bytes:
        """Returns the complete lines available."""
        if self.pipe is not None:
            with suppress(BlockingIOError):
                if chunk := os.read(self.pipe, PIPE_BYTES):
                    return self._lines.feed(chunk)
                self._close_pipe()
                return self._lines.finish()
        return b""

    def close(self) -> bytes:
        """Waits for its end and returns its last lines."""
        self._popen.wait()
        last = self.read() + self._lines.finish()
        self._close_pipe()
        return last

    def describe_end(self) -> str:
        """Returns how it ended, for messages."""
        code = self.code or 0
        if code >= 0:
            return f"{self.name} exited with code {code}"
        name = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
        return f"{self.name} {'did not stop in time and ' if self.killed else ''}was killed by {name}"

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS forbids signals to ended processes
            os.killpg(self._popen.pid, number)

    def _close_pipe(self) -> None:
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None


def _drop_rewritten(line: bytes) -> bytes:
    """The text after the last carriage return that is followed by text."""
    end = len(line.rstrip(b"\r"))
    return line[line.rfind(b"\r", 0, end) + 1 :]


def _end_with_parent() -> Callable[[], None] | None:
    """Function that a child calls before exec, so that the kernel kills it with its parent."""
    if sys.platform != "linux":
        return None
    parent, prctl = os.getpid(), ctypes.CDLL(None).prctl

    def set_death_signal() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call
            os.kill(os.getpid(), signal.SIGKILL)

    return set_death_signal
