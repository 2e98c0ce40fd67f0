"""A PostgreSQL of the tests' own.

`pytest-postgresql` starts one as the user that runs the tests, which PostgreSQL refuses where that is root,
as it is in a container.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

BINARIES = max(
    Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda path: int(path.parent.name)
)
SUPERUSER = "postgres"


class OwnPostgres:
    """A cluster in a folder, which can be stopped, killed and started again.

    Args:
        folder: Is made, and belongs to the user `postgres` where root runs the tests.
    """

    def __init__(self, folder: Path) -> None:
        self._data = folder / "data"
        folder.mkdir(parents=True)
        if os.geteuid() == 0:
            shutil.chown(folder, SUPERUSER)
            for parent in folder.parents:  # pytest's folders are for their owner alone
                if parent.owner() == "root" and parent != Path("/tmp") and Path("/tmp") in parent.parents:
                    parent.chmod(parent.stat().st_mode | 0o711)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "--pgdata", self._data, "--auth", "trust", "--username", SUPERUSER, "--no-sync")
        self._folder = folder
        self.start()

    @property
    def url(self) -> str:
        """Of its first database."""
        return self.url_of(SUPERUSER)

    def url_of(self, database: str) -> str:
        """Of one of its databases."""
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Starts it, and returns when it answers."""
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "--pgdata", self._data, "-w", "-l", self._folder / "log", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stops it; with the mode `immediate` as a loss of power would."""
        self._run("pg_ctl", "--pgdata", self._data, "-w", "-m", mode, "stop")

    def _run(self, program: str, *words: object) -> None:
        assert BINARIES is not None
        command: Sequence[str] = [str(BINARIES / program), *map(str, words)]
        if os.geteuid() == 0:
            command = ["runuser", "-u", SUPERUSER, "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120, cwd="/")
