"""Lost photographs when one of two replicas behind nginx is killed under load.

    python -m benchmarks.serving.replicas [--seconds 45] [--clients 8] [--model FOLDER] [--json FILE]

nginx (Debian's package `nginx-light`) runs `deploy/nginx/segdec.conf`. One replica is killed (SIGKILL) after
a third of the time. There are two trials:

- as shipped, without client retries; the replica restarts at once.
  nginx retries failed requests on the other one.
- nginx without retries, without client retries: only the requests in progress on the killed replica are lost.
"""

import json
import os
import pwd
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.environments import ROOT
from benchmarks.harness import Target, benchmark_parser, finish
from benchmarks.serving.load import closed_loop, encode_request, generators
from benchmarks.serving.server_process import ServerProcess, free_port, start_service
from benchmarks.untrained_models import DEFAULT_MODEL, given_or_untrained, photograph
from segdec.errors import ConfigError
from segdec.runtime.cli import clean_exit

BALANCER = ROOT / "deploy" / "nginx" / "segdec.conf"
NGINX_RETRIES = "proxy_next_upstream error http_503 non_idempotent;"
NO_RETRIES = "proxy_next_upstream error;"
"""nginx then tries the other replica only if the first one accepts no connection."""

MAIN = """
user {user};
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    log_format attempts escape=json
        '{{"path": "$uri", "replicas": "$upstream_addr", "statuses": "$upstream_status",'
        ' "connected": "$upstream_connect_time", "completed": "$request_completion"}}';
    access_log {folder}/attempts.jsonl attempts;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/segdec.conf;
}}
"""
"""The main configuration; it writes to one folder only, so that any user can run it."""

BETWEEN = ", | : "
"""Separators of attempts in nginx's log."""


class Attempt(NamedTuple):
    """One upstream request: address of the replica, status, and whether the connection was accepted."""

    replica: str
    status: int
    connected: bool


class Trial(NamedTuple):
    """nginx's retry directive, and whether the killed replica restarts."""

    name: str
    directive: str
    restarts: bool


TRIALS = (Trial("as shipped", NGINX_RETRIES, restarts=True), Trial("no retries", NO_RETRIES, restarts=False))


@dataclass(frozen=True)
class TrialResult:
    """Result of a trial.

    Attributes:
        answered: Photographs with an answer.
        failed: Other photographs, by status or error.
        attempts: Of each photograph, from nginx's log.
        killed: Address of the killed replica.
    """

    answered: int
    failed: Counter[str]
    attempts: Sequence[Sequence[Attempt]]
    killed: str

    @property
    def in_progress(self) -> int:
        """Photographs in progress on the killed replica."""
        return sum(Attempt(self.killed, 502, connected=True) in tried for tried in self.attempts)

    @property
    def retried(self) -> int:
        """Photographs that nginx sent to both replicas."""
        return sum(len(tried) > 1 for tried in self.attempts)

    @property
    def after_restart(self) -> int:
        """Photographs that the killed replica answered after its restart."""
        asked = [attempt for tried in self.attempts for attempt in tried if attempt.replica == self.killed]
        refused = [number for number, attempt in enumerate(asked) if attempt.status != 200]
        return len(asked) - 1 - refused[-1] if refused else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__, model=DEFAULT_MODEL, seconds=45.0, side=256)
    parser.add_argument("--clients", type=int, default=8, help="connections (default: %(default)s)")
    options = parser.parse_args(arguments)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as place, generators() as pool:
        model = given_or_untrained(options.model, Path(place))
        image = photograph(options.side, options.side)
        load = (image, options.clients, options.seconds)
        results = {trial.name: run(trial, pool, model, *load) for trial in TRIALS}
    failed = {name: dict(result.failed) for name, result in results.items()}
    return finish(options.json, tabulate(results), targets(results), failed=failed)


def ask_once(port: int, image: bytes, clients: int, seconds: float) -> tuple[int, Counter[str]]:
    """Sends each photograph once; returns the number of answers, and the failures."""
    request = encode_request("POST", "/v1/predict", image, {"Content-Type": "image/png"})
    load = closed_loop(port, [request], clients=clients, seconds=seconds)
    statuses = load.statuses()
    return statuses.pop(200, 0), Counter({str(status): count for status, count in statuses.items()})


def run(trial: Trial, pool: Executor, model: Path, image: bytes, clients: int, seconds: float) -> TrialResult:
    """Starts replicas and nginx, sends the load, and kills one replica meanwhile."""
    flags = ("--model", str(model), "--trusted-proxies", "127.0.0.1")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        killed, other = (stack.enter_context(start_service(*flags)) for _ in range(2))
        balancer = stack.enter_context(balance(folder, (killed.port, other.port), trial.directive))
        load = pool.submit(ask_once, balancer.port, image, clients, seconds)
        time.sleep(seconds / 3)
        killed.kill()
        if trial.restarts:
            stack.enter_context(start_service(*flags, port=killed.port))
        answered, failed = load.result()
        attempts = read_attempts(folder / "attempts.jsonl")
        return TrialResult(answered, failed, attempts, f"127.0.0.1:{killed.port}")


def find_nginx() -> str | None:
    """Finds the program, also in Debian's /usr/sbin."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def balance(folder: Path, ports: tuple[int, int], directive: str) -> ServerProcess:
    """Returns nginx with the shipped configuration, other ports and a retry directive.

    Raises:
        ConfigError: If nginx is not installed.
    """
    program = find_nginx()
    if program is None:
        raise ConfigError("nginx is not installed. Install it, for example Debian's package nginx-light.")
    port = free_port()
    text = BALANCER.read_text(encoding="utf-8")
    shipped = ("127.0.0.1:8001", "127.0.0.1:8002", "listen 8000;", NGINX_RETRIES)
    here = (*(f"127.0.0.1:{replica}" for replica in ports), f"listen 127.0.0.1:{port};", directive)
    for before, after in zip(shipped, here, strict=True):
        if before not in text:
            raise ConfigError(f"{BALANCER} has no {before!r}. Expected it, to replace it by {after!r}.")
        text = text.replace(before, after)
    (folder / "segdec.conf").write_text(text, encoding="utf-8")
    user = pwd.getpwuid(os.getuid()).pw_name
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user), encoding="utf-8")
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    return ServerProcess(command, port=port)


def read_attempts(log: Path) -> list[list[Attempt]]:
    """Reads the attempts of each photograph from the log of `MAIN`.

    An answer that the end of its replica cut short has the status 502, as one that had not begun.
    """
    photographs = []
    for line in map(json.loads, log.read_text(encoding="utf-8").splitlines()):
        if line["path"] == "/v1/predict":
            fields = (re.split(BETWEEN, line[key]) for key in ("replicas", "statuses", "connected"))
            tried = zip(*fields, strict=True)
            attempts = [Attempt(name, int(status), at != "-") for name, status, at in tried]
            if not line["completed"]:
                attempts[-1] = attempts[-1]._replace(status=502)
            photographs.append(attempts)
    return photographs


def tabulate(results: Mapping[str, TrialResult]) -> list[dict[str, object]]:
    """Returns a row for each trial."""
    return [
        {
            "trial": name,
            "answered": result.answered,
            "failed": result.failed.total(),
            "in progress on the killed": result.in_progress,
            "sent to both": result.retried,
            "answered after restart": result.after_restart,
        }
        for name, result in results.items()
    ]


def targets(results: Mapping[str, TrialResult]) -> list[Target]:
    """Returns the targets."""
    shipped, once = results.values()
    lost = once.failed.total() - once.in_progress
    return [
        Target("as shipped: failed", shipped.failed.total(), highest=0),
        Target("as shipped: answered after the restart", shipped.after_restart, lowest=1),
        Target("no retries: failed, not in progress on the killed replica", lost, highest=0),
        Target("no retries: in progress when killed", once.in_progress, lowest=1),
    ]


if __name__ == "__main__":
    sys.exit(main())
