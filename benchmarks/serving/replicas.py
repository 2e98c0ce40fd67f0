"""Does anyone notice when one of two replicas is killed? Two services behind nginx, under load.

    python -m benchmarks.serving.replicas [--seconds 45] [--clients 8] [--model FOLDER] [--json FILE]

nginx runs `deploy/nginx/segdec.conf`; Debian's package `nginx-light` has it. After a third of the time one
replica is killed (SIGKILL). Three times:

- as shipped, each photograph asked about once, and the replica started again at once: what it had not
  answered, and what it refuses while it loads, nginx sends to the other one.
- nginx sends nothing twice, each photograph asked about once: lost is what was under way on the killed
  replica, no more.
- nginx sends nothing twice, asked by `segdec.client`: it asks again, so that nothing is lost.
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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.environments import ROOT
from benchmarks.reporting import Target, benchmark_parser, conclude
from benchmarks.serving.load import closed_loop, encode_request, generators
from benchmarks.serving.server_process import ServerProcess, free_port, start_service
from benchmarks.untrained_models import given_or_untrained, photograph
from segdec.client import Client
from segdec.errors import ConfigError, ServiceError
from segdec.runtime.cli import clean_exit

BALANCER = ROOT / "deploy" / "nginx" / "segdec.conf"
SENT_AGAIN = "proxy_next_upstream error http_503 non_idempotent;"
NEVER_SENT_AGAIN = "proxy_next_upstream error;"
"""nginx then asks the other replica only if the first one takes no connection."""

MAIN = """
user {user};
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    log_format attempts escape=json
        '{{"path": "$uri", "replicas": "$upstream_addr", "statuses": "$upstream_status",'
        ' "connected": "$upstream_connect_time"}}';
    access_log {folder}/attempts.jsonl attempts;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/segdec.conf;
}}
"""
"""What an installed nginx has around the file. It writes to one folder alone, so that any user may run it."""


BETWEEN = ", | : "
"""Attempts in nginx's log: at the next replica by itself, and by another location of the file."""


class Attempt(NamedTuple):
    """One replica that a photograph was sent to: its address, its status, whether it took the connection."""

    replica: str
    status: int
    connected: bool


@dataclass(frozen=True)
class Trial:
    """One way to ask, what nginx sends again, and whether the killed replica is started again under load."""

    name: str
    directive: str
    ask: Callable[[int, bytes, int, float], tuple[int, Counter[str]]]
    started_again: bool


@dataclass(frozen=True)
class TrialResult:
    """What came of a trial.

    Attributes:
        answered: Photographs with an answer.
        failed: Photographs without one, by the status or error that came instead.
        attempts: At each photograph, from nginx's log.
        killed: Address of the replica that was killed.
    """

    answered: int
    failed: Counter[str]
    attempts: Sequence[Sequence[Attempt]]
    killed: str

    @property
    def under_way(self) -> int:
        """Photographs that the killed replica had taken and did not answer."""
        return sum(Attempt(self.killed, 502, connected=True) in tried for tried in self.attempts)

    @property
    def sent_again(self) -> int:
        """Photographs that nginx sent to both replicas."""
        return sum(len(tried) > 1 for tried in self.attempts)

    @property
    def since_return(self) -> int:
        """Photographs that the killed replica answered after it had refused any: it was started again."""
        asked = [attempt for tried in self.attempts for attempt in tried if attempt.replica == self.killed]
        refused = [number for number, attempt in enumerate(asked) if attempt.status != 200]
        return len(asked) - 1 - refused[-1] if refused else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=45.0, help="of each load (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=8, help="who ask (default: %(default)s)")
    parser.add_argument("--side", type=int, default=256, help="of the photograph, px (default: %(default)s)")
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="an artifact (default: an untrained compact network, 256 px)",
    )
    options = parser.parse_args(arguments)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as place, generators() as pool:
        model = given_or_untrained(options.model, Path(place))
        image = photograph(options.side, options.side)
        results = {
            trial.name: run(trial, pool, model, image, options.clients, options.seconds) for trial in TRIALS
        }
    return conclude(options.json, tabulate(results), targets(results), failed=failures(results))


# === The load ===


def ask_once(port: int, image: bytes, clients: int, seconds: float) -> tuple[int, Counter[str]]:
    """Asks about each photograph once; how many were answered, and what came instead for the others."""
    request = encode_request("POST", "/v1/predict", image, {"Content-Type": "image/png"})
    load = closed_loop(port, [request], clients=clients, seconds=seconds)
    statuses = load.statuses()
    return statuses.pop(200, 0), Counter({str(status): count for status, count in statuses.items()})


def ask_by_client(port: int, image: bytes, clients: int, seconds: float) -> tuple[int, Counter[str]]:
    """Asks as `ask_once`, by the client that ships with the product."""
    until = time.perf_counter() + seconds

    def ask_again() -> tuple[int, Counter[str]]:
        answered, failed = 0, Counter[str]()
        with Client(f"http://127.0.0.1:{port}") as client:
            while time.perf_counter() < until:
                try:
                    client.predict(image)
                    answered += 1
                except ServiceError as error:
                    failed[str(error)] += 1
        return answered, failed

    with ThreadPoolExecutor(clients) as threads:
        results = [running.result() for running in [threads.submit(ask_again) for _ in range(clients)]]
    return sum(answered for answered, _ in results), sum((failed for _, failed in results), Counter())


TRIALS = (
    Trial("as shipped, asked once", SENT_AGAIN, ask_once, started_again=True),
    Trial("nothing sent twice, asked once", NEVER_SENT_AGAIN, ask_once, started_again=False),
    Trial("nothing sent twice, segdec.client", NEVER_SENT_AGAIN, ask_by_client, started_again=False),
)


# === The replicas ===


def run(trial: Trial, pool: Executor, model: Path, image: bytes, clients: int, seconds: float) -> TrialResult:
    """Starts replicas and nginx, asks, and kills one replica meanwhile."""
    flags = ("--model", str(model))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        killed, other = (stack.enter_context(start_service(*flags)) for _ in range(2))
        balancer = stack.enter_context(balance(folder, (killed.port, other.port), trial.directive))
        load = pool.submit(trial.ask, balancer.port, image, clients, seconds)
        time.sleep(seconds / 3)
        killed.kill()
        if trial.started_again:
            stack.enter_context(start_service(*flags, port=killed.port))
        answered, failed = load.result()
        return TrialResult(
            answered, failed, read_attempts(folder / "attempts.jsonl"), f"127.0.0.1:{killed.port}"
        )


def find_nginx() -> str | None:
    """Finds the program; Debian has it where only root looks."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def balance(folder: Path, ports: tuple[int, int], directive: str) -> ServerProcess:
    """Starts nginx with the configuration that ships, but for these ports and what it sends again.

    Raises:
        ConfigError: If nginx is not installed.
    """
    program = find_nginx()
    if program is None:
        raise ConfigError("nginx is not installed. Install it, for example Debian's package nginx-light.")
    port = free_port()
    text = BALANCER.read_text(encoding="utf-8")
    shipped = ("127.0.0.1:8001", "127.0.0.1:8002", "listen 8000;", SENT_AGAIN)
    here = (*(f"127.0.0.1:{replica}" for replica in ports), f"listen 127.0.0.1:{port};", directive)
    for before, after in zip(shipped, here, strict=True):
        if before not in text:
            raise ConfigError(f"{BALANCER} has no {before!r}. Expected it, to put {after!r} in its place.")
        text = text.replace(before, after)
    (folder / "segdec.conf").write_text(text, encoding="utf-8")
    user = pwd.getpwuid(os.getuid()).pw_name
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user), encoding="utf-8")
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    return ServerProcess(command, port=port)


def read_attempts(log: Path) -> list[list[Attempt]]:
    """Reads the attempts at each photograph, from the log of `MAIN`."""
    lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [
        [
            Attempt(replica, int(status), connected != "-")
            for replica, status, connected in zip(
                *(re.split(BETWEEN, line[key]) for key in ("replicas", "statuses", "connected")), strict=True
            )
        ]
        for line in lines
        if line["path"] == "/v1/predict"
    ]


# === What came of it ===


def tabulate(results: Mapping[str, TrialResult]) -> list[dict[str, object]]:
    """Returns a row for each trial."""
    return [
        {
            "trial": name,
            "answered": result.answered,
            "failed": result.failed.total(),
            "under way on the killed": result.under_way,
            "sent to both": result.sent_again,
            "answered by it again": result.since_return,
        }
        for name, result in results.items()
    ]


def failures(results: Mapping[str, TrialResult]) -> dict[str, dict[str, int]]:
    """Returns what came in place of answers."""
    return {name: dict(result.failed) for name, result in results.items()}


def targets(results: Mapping[str, TrialResult]) -> list[Target]:
    """Returns what was to be reached."""
    shipped, once, client = results.values()
    return [
        Target("as shipped: failed", shipped.failed.total(), highest=0),
        Target("as shipped: answered by the replica that was started again", shipped.since_return, lowest=1),
        Target(
            "nothing sent twice: failed beyond those under way",
            once.failed.total() - once.under_way,
            highest=0,
        ),
        Target("nothing sent twice: under way when it was killed", once.under_way, lowest=1),
        Target("nothing sent twice, segdec.client: failed", client.failed.total(), highest=0),
        Target("nothing sent twice, segdec.client: under way when it was killed", client.under_way, lowest=1),
    ]


if __name__ == "__main__":
    sys.exit(main())
