"""A PostgreSQL server for the tests.

`pytest-postgresql` starts one as the user that runs the tests, which PostgreSQL refuses where that is root,
as it is in a container.
"""

import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

BINARIES = max(
    Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda path: int(path.parent.name)
)
SUPERUSER = "postgres"
WAIT_S = 300
"""Longest wait for a program of PostgreSQL."""
sqlite_only = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""Marks a test of `database_url` that does not depend on the kind of database."""
both_databases = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
"""Marks a test of `database_url` in a folder whose tests use SQLite otherwise."""


def free_port() -> int:
    """Finds a port that no client's connection takes while the server is stopped."""
    first_of_clients = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", random.randrange(10_000, first_of_clients)))
            return int(free.getsockname()[1])


class OwnPostgres:
    """A cluster that can be stopped, killed and started again.

    Its folder belongs to the user `postgres` if root runs the tests, so it is not one of pytest's.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._data = self._folder / "data"
        if os.geteuid() == 0:
            shutil.chown(self._folder, SUPERUSER)
        self.port = free_port()
        self._run("initdb", "--pgdata", self._data, "--auth", "trust", "--username", SUPERUSER, "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        """URL of the first database."""
        return self.url_of(SUPERUSER)

    def url_of(self, database: str) -> str:
        """Returns the URL of a database."""
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Starts the cluster and waits until it answers.

        Without fsync, which only the failure of the whole machine would need: a start after a crash would
        write every file of every database to the disk first, which can take longer than the wait. Without
        autovacuum, which begins at any time.
        """
        options = (
            f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off -c autovacuum=off"
        )
        words = ["-w", "-t", str(WAIT_S), "-l", self._folder / "log", "-o", options, "start"]
        self._run("pg_ctl", "--pgdata", self._data, *words)

    def stop(self, mode: str = "fast") -> None:
        """Stops the cluster; with the mode `immediate` as a crash would."""
        self._run("pg_ctl", "--pgdata", self._data, "-w", "-m", mode, "stop")

    def end_connections(self) -> None:
        """Ends all connections, as a change of the primary server does."""
        with psycopg.connect(self.url, autocommit=True) as own:
            own.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    def remove(self) -> None:
        """Stops the cluster and removes its folder."""
        self.stop("immediate")
        shutil.rmtree(self._folder)

    def _run(self, program: str, *words: object) -> None:
        assert BINARIES is not None
        command: Sequence[str] = [str(BINARIES / program), *map(str, words)]
        if os.geteuid() == 0:
            command = ["runuser", "-u", SUPERUSER, "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=WAIT_S, cwd="/")


@contextmanager
def running_postgres() -> Iterator[OwnPostgres]:
    """Yields a cluster, which is removed afterwards; skips the test where PostgreSQL is not installed."""
    if BINARIES is None:
        pytest.skip("no PostgreSQL: Debian's package postgresql has it")
    cluster = OwnPostgres()
    yield cluster
    cluster.remove()
