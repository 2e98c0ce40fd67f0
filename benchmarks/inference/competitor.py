"""A competitor process that runs the same work once per request."""

import json
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Self

from benchmarks.environments import signal_group, start_process
from segdec.errors import RunError


class Competitor:
    """A context manager that runs a process with the protocol of `peers.answering`.

    The process is paused between requests: threads of some libraries keep spinning and would slow down the
    next competitor.

    Args:
        command: What to run.

    Attributes:
        ready: Its first answer: `version` of its library.
        answers: Its answers: `seconds`, `cpu_seconds`, `peak_mb`.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.ready: Mapping[str, Any] = {}
        self.answers: list[Mapping[str, Any]] = []
        self._command = list(command)

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        pipe = subprocess.PIPE
        self._process = start_process(self._command, stdin=pipe, stdout=pipe, stderr=self._log)
        try:
            self.ready = self._read()
            signal_group(self._process, signal.SIGSTOP)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self._end()

    def measure(self) -> float:
        """Runs the work once; returns its seconds.

        Raises:
            RunError: If the process ends.
        """
        signal_group(self._process, signal.SIGCONT)
        assert self._process.stdin is not None
        try:
            print("go", file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise self._failure() from None
        self.answers.append(self._read())
        signal_group(self._process, signal.SIGSTOP)
        return float(self.answers[-1]["seconds"])

    def _read(self) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._failure()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _failure(self) -> RunError:
        self._process.wait()
        self._log.seek(0)
        command, output = " ".join(self._command), self._log.read()[-3000:]
        return RunError(f"`{command}` exited with {self._process.returncode}. Its output:\n{output}")

    def _end(self) -> None:
        signal_group(self._process, signal.SIGKILL)
        with self._process:  # closes the pipes and waits
            self._log.close()
