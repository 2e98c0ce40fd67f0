"""A server in its own process: started, awaited, stopped."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import httpx

from benchmarks.environments import signal_group, start_process
from segdec.errors import RunError

START_S = 180.0
STOP_S = 40.0
POLL_S = 0.02
PARENT, USER, SYSTEM = 1, 11, 12
"""Indices in /proc/PID/stat after the command name: parent, ticks in user and system mode."""


class ServerProcess:
    """Runs a server on a free port of this machine while the block is entered.

    Args:
        command: What to run; `{port}` is replaced.
        ready: Path that returns 200 when the server is ready.
        environment: Additional variables.
        port: To listen on; None = a free one.

    Attributes:
        port: It listens on.
        pid: Of the started process.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        ready: str = "/readyz",
        environment: Mapping[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        self.port = free_port() if port is None else port
        self._command = [word.replace("{port}", str(self.port)) for word in command]
        self._environment = dict(environment or {})
        self._ready = f"http://127.0.0.1:{self.port}{ready}"

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": self._log, "stderr": self._log}
        self._process = start_process(self._command, self._environment, **pipes)
        try:
            self._wait(time.perf_counter() + START_S)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def kill(self) -> None:
        """Kills the server."""
        signal_group(self._process, signal.SIGKILL)

    def log(self) -> str:
        """Returns the output of the server so far."""
        self._log.seek(0)
        return self._log.read()

    def resident_kib(self) -> int:
        """Returns the resident memory of the process, KiB."""
        return self._status_kib("VmRSS")

    def peak_mb(self) -> float:
        """Returns the memory peak of the process, 10⁶ bytes."""
        return self._status_kib("VmHWM") * 1024 / 1e6

    def processor_s(self) -> float:
        """Returns the CPU time of the server and its child processes, s."""
        ticks = sum(int(fields[USER]) + int(fields[SYSTEM]) for fields in _tree(self.pid).values())
        return ticks / os.sysconf("SC_CLK_TCK")

    def _status_kib(self, key: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(next(line for line in status.splitlines() if line.startswith(key)).split()[1])

    def _wait(self, until: float) -> None:
        with httpx.Client(trust_env=False) as client:
            while not _answers(client, self._ready):
                if self._process.poll() is not None or time.perf_counter() > until:
                    command, output = " ".join(self._command), self.log()[-3000:]
                    raise RunError(
                        f"`{command}` did not become ready at {self._ready}. Its output:\n{output}"
                    )
                time.sleep(POLL_S)

    def _stop(self) -> None:
        try:
            signal_group(self._process, signal.SIGTERM)
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            signal_group(self._process, signal.SIGKILL)  # the rest of its process group
            self._process.wait()
            self._log.close()


def start_service(*flags: str, port: int | None = None) -> ServerProcess:
    """Returns the inspection service with these flags."""
    return ServerProcess([sys.executable, "-m", "api", "--port", "{port}", *flags], port=port)


def free_port() -> int:
    """Returns a free port of this machine."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _tree(root: int) -> dict[int, list[str]]:
    """Returns the /proc fields of a process and its descendants, by id."""
    known = {int(path.parent.name): _stat_fields(path) for path in Path("/proc").glob("[0-9]*/stat")}
    tree: dict[int, list[str]] = {}
    wanted = [root]
    while wanted:
        parent = wanted.pop()
        if known.get(parent):
            tree[parent] = known[parent]
            wanted += [pid for pid, fields in known.items() if fields and int(fields[PARENT]) == parent]
    return tree


def _stat_fields(path: Path) -> list[str]:
    """Returns the fields after the command name in a /proc/PID/stat; none if the process has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
