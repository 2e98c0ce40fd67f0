"""A competitor: a process that does the same work once each time it is told to."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Self

from benchmarks.environments import ROOT
from segdec.errors import RunError


class Competitor:
    """Runs a process that speaks as `peers.answering` does while the block is entered.

    It is stopped whenever it is not asked: threads of some libraries spin for a while when their work is
    done, and would take the processor from the next competitor.

    Args:
        command: What to run.

    Attributes:
        ready: What it told when it was ready: `version` of its library, and what the first work told.
        answers: What it answered, in order: `seconds`, `peak_mb` and more.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.ready: Mapping[str, Any] = {}
        self.answers: list[dict[str, Any]] = []
        self._command = list(command)

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,  # the processes that it starts are stopped with it
        )
        try:
            self.ready = self._read()
            self._signal(signal.SIGSTOP)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self._end()

    def ask(self) -> float:
        """Returns the seconds that the work takes once.

        Raises:
            RunError: If the process ends instead.
        """
        self._signal(signal.SIGCONT)
        assert self._process.stdin is not None
        try:
            print("go", file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise self._failure() from None
        self.answers.append(dict(self._read()))
        self._signal(signal.SIGSTOP)
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
        said = self._log.read()[-3000:]
        return RunError(f"`{' '.join(self._command)}` left with {self._process.returncode}. It said:\n{said}")

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return

    def _end(self) -> None:
        self._signal(signal.SIGKILL)
        with self._process:  # closes the pipes and waits
            self._log.close()
