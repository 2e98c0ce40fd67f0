"""A group of processes with one output stream; all processes end together."""

import math
import selectors
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import BinaryIO

from training.distribution.interruption import EXIT_CODES, EXIT_PEER_LOST
from training.distribution.task_process import Task, TaskProcess

TICK_S = 0.1
EXPECTED_STOP_CODES = {0, -signal.SIGTERM, EXIT_CODES[signal.SIGTERM], EXIT_PEER_LOST}


@dataclass(frozen=True)
class GroupResult:
    """Exit code of a group, description of the first failure, and first signal received.

    The code is that of the first failed task (128 + n for signal n); otherwise 75 or 130 after SIGTERM or
    SIGINT, 128 + n after a second signal; 0 if finished.
    """

    code: int
    failure: str | None = None
    received: signal.Signals | None = None


class ProcessGroup:
    """Runs tasks in parallel until all have finished, one fails, or a signal is received.

    When all tasks except servers have ended with 0, the servers are stopped. After a failure or a signal the
    other tasks get SIGTERM, servers last, since the others may need them to save. Tasks that do not stop in
    time are killed. A second signal kills all.

    Args:
        tasks: Tasks to run.
        output: Receives the lines of all tasks, prefixed with `[name] `, coloured with `color`.
        grace_s: Time to stop after a failure, and for servers at the end, s.
        stop_timeout_s: Time to stop after a signal, s; a validation may have to finish first.
        cause_timeout_s: Time to wait for the failure of a task that another one reported as lost, s.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        output: BinaryIO,
        *,
        color: bool = False,
        grace_s: float = 10.0,
        stop_timeout_s: float = 300.0,
        cause_timeout_s: float = 2.0,
    ) -> None:
        self._tasks, self._output, self._color = tasks, output, color
        self._grace_s, self._stop_timeout_s, self._cause_timeout_s = grace_s, stop_timeout_s, cause_timeout_s
        self._processes: list[TaskProcess] = []
        self._selector = selectors.DefaultSelector()
        self._signals: list[signal.Signals] = []
        self._deadline = math.inf
        self._failed: TaskProcess | None = None
        self._failed_at = math.inf
        self._output_error: OSError | None = None

    def run(self) -> GroupResult:
        """Starts the tasks and waits for their end. Call it once, in the main thread.

        Raises:
            OSError: If a task cannot be started or the output cannot be written; all tasks have then ended.
        """
        with self._record_signals(), self._selector:
            try:
                self._start()
                while self._running():
                    for key, _ in self._selector.select(TICK_S):
                        self._write(key.data.read())
                        if key.data.pipe is None:
                            self._selector.unregister(key.fd)
                    self._record_ended()
                    self._stop_as_needed()
            finally:
                for process in self._running():
                    process.kill()
                    process.close()
        if self._output_error is not None:
            raise self._output_error
        return self._result()

    def _start(self) -> None:
        for number, task in enumerate(self._tasks):
            if self._signals:
                break
            prefix = f"[{task.name}] "
            if self._color:
                prefix = f"\x1b[{31 + number % 6}m{prefix}\x1b[0m"
            process = TaskProcess(task, prefix.encode())
            self._processes.append(process)
            self._selector.register(process.pipe or 0, selectors.EVENT_READ, process)

    def _running(self) -> list[TaskProcess]:
        return [process for process in self._processes if process.code is None]

    def _non_servers(self) -> list[TaskProcess]:
        return [process for process in self._running() if not process.server]

    def _record_ended(self) -> None:
        ended = [process for process in self._running() if process.poll()]
        for process in ended:
            if process.pipe is not None:
                self._selector.unregister(process.pipe)
            self._write(process.close())
        for process in ended:
            # The loss of a peer is a consequence: another failure soon afterwards is the cause.
            known = self._failed is not None and self._failed.code != EXIT_PEER_LOST
            if not known and self._has_failed(process):
                self._failed, self._failed_at = process, time.monotonic()

    def _has_failed(self, process: TaskProcess) -> bool:
        if process.server and not self._non_servers():
            return False  # servers are no longer needed
        return process.code not in (EXPECTED_STOP_CODES if process.stop_requested else {0})

    def _stop_as_needed(self) -> None:
        """Stops and kills tasks as necessary; after a lost peer, once that peer has had time to end."""
        if self._signals or self._output_error:
            self._stop(self._stop_timeout_s)
        waiting_s = self._cause_timeout_s if self._failed and self._failed.code == EXIT_PEER_LOST else 0.0
        if time.monotonic() > self._failed_at + waiting_s or not self._non_servers():
            self._stop(self._grace_s)
        if len(self._signals) > 1 or time.monotonic() > self._deadline:
            self._kill()

    def _stop(self, seconds: float) -> None:
        self._deadline = min(self._deadline, time.monotonic() + seconds)
        for process in self._non_servers() or self._running():
            process.terminate()

    def _kill(self) -> None:
        for process in self._running():
            process.kill()

    def _write(self, lines: bytes) -> None:
        """Writes lines; after an error nothing more is written, and the tasks are stopped."""
        if not lines or self._output_error is not None:
            return
        try:
            self._output.write(lines)
            self._output.flush()
        except OSError as error:
            self._output_error = error

    def _result(self) -> GroupResult:
        received = self._signals[0] if self._signals else None
        if len(self._signals) > 1:
            return GroupResult(128 + self._signals[1], None, received)
        if self._failed is not None:
            code = self._failed.code or 0
            return GroupResult(code if code > 0 else 128 - code, self._failed.describe_end(), received)
        started = len(self._processes) == len(self._tasks)
        done = started and all(process.server or process.code == 0 for process in self._processes)
        return GroupResult(0 if received is None or done else EXIT_CODES[received], None, received)

    @contextmanager
    def _record_signals(self) -> Iterator[None]:
        former = {number: signal.signal(number, self._on_signal) for number in EXIT_CODES}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._signals.append(signal.Signals(number))
        if len(self._signals) > 1:
            self._kill()
