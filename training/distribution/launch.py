"""Starts a cluster of training processes on this machine."""

import argparse
import os
import shlex
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from segdec.errors import ConfigError
from training.distribution.cluster import TF_CONFIG_VARIABLE, Cluster
from training.distribution.interruption import EXIT_CODES
from training.distribution.process_group import GroupResult, ProcessGroup
from training.distribution.task_process import Task
from training.experiment_file import load_experiment

FRESH = "--fresh"
LAUNCH_USAGE = (
    "Usage: python -m training launch --workers N [--ps P] EXPERIMENT.toml [--fresh] [--field value]…"
)
LAUNCH_HELP = (
    f"{LAUNCH_USAGE}\n"
    "Starts N workers on this machine, which train synchronously. With --ps P it starts a chief, N workers\n"
    "and P parameter servers, which train asynchronously. Each process is `python -m training run` with its\n"
    "own TF_CONFIG; the fields are listed by: python -m training run --help\n"
    "The exit code is 0, or that of the first task that fails, which stops all others.\n"
    "SIGTERM and Ctrl-C save a checkpoint and exit with 75 and 130; the command without --fresh resumes."
)


def launch(arguments: Sequence[str]) -> int:
    """Trains on a local cluster, see `LAUNCH_USAGE`; returns the exit code.
    Raises a `ConfigError` if an argument is invalid; nothing has been started then.
    """
    if "--help" in arguments or "-h" in arguments:
        print(LAUNCH_HELP)
        return 0
    workers, servers, (experiment, *flags) = _parse(arguments)
    load_experiment(Path(experiment), [flag for flag in flags if flag != FRESH])
    command = [sys.executable, "-m", "training", "run", experiment, *flags]
    tasks = [
        Task(cluster.name, command, {TF_CONFIG_VARIABLE: cluster.to_tf_config()}, server=cluster.is_server)
        for cluster in make_clusters(workers, servers)
    ]
    print("Starting", ", ".join(task.name for task in tasks), flush=True)
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    end = ProcessGroup(tasks, sys.stdout.buffer, color=color).run()
    _report(end, arguments)
    return end.code


def _parse(arguments: Sequence[str]) -> tuple[int, int, list[str]]:
    """Numbers of workers and parameter servers, and the other arguments: experiment and flags."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--ps", type=int, default=0)
    try:
        counts, rest = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError as error:
        raise ConfigError(f"{error}. {LAUNCH_USAGE}") from None
    if counts.workers is None or counts.workers < 1:
        given = "is missing" if counts.workers is None else f"{counts.workers} is too small"
        raise ConfigError(f"--workers {given}. Expected 1 or more. {LAUNCH_USAGE}")
    if counts.ps < 0:
        raise ConfigError(f"--ps {counts.ps} is too small. Expected 0 or more. {LAUNCH_USAGE}")
    if not rest or rest[0].startswith("-"):
        raise ConfigError(f"No experiment given. {LAUNCH_USAGE}")
    return counts.workers, counts.ps, rest


def make_clusters(workers: int, servers: int = 0) -> list[Cluster]:
    """Creates a cluster on free ports of this machine, once for each of its tasks, the chief first."""
    sizes = {"chief": 1, "worker": workers, "ps": servers} if servers else {"worker": workers}
    ports = find_ports(sum(sizes.values()))
    jobs = {job: tuple(f"127.0.0.1:{ports.pop()}" for _ in range(size)) for job, size in sizes.items()}
    return [Cluster(jobs, job, index) for job, size in sizes.items() for index in range(size)]


def find_ports(count: int) -> list[int]:
    """Finds different free ports; all are bound until the last is found."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("", 0))
        return [one.getsockname()[1] for one in sockets]


def _report(end: GroupResult, arguments: Sequence[str]) -> None:
    """Prints one line if the run is not finished."""
    if end.failure is not None:
        print(f"error: {end.failure}; the others were stopped.", file=sys.stderr)
    elif end.received is not None and end.code == EXIT_CODES[end.received]:
        kept = [argument for argument in arguments if argument != FRESH]
        resume = shlex.join(["python", "-m", "training", "launch", *kept])
        print(f"Stopped by {end.received.name}. Resume with: {resume}", file=sys.stderr)
