"""Clients that send photographs to a recording service which fails, and what must be true afterwards."""

import hashlib
import itertools
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import httpx
import numpy as np
from sqlalchemy import select

from api.records.database import open_database
from api.records.tables import inspections, pictures
from segdec.images import encode_png

ROOT = Path(__file__).parents[3]
CLIENTS = 8


class Clients:
    """Send photographs, and each again until it is answered; remember the answers by part."""

    def __init__(self) -> None:
        self.answers: dict[str, list[int]] = {}
        self.refusals = 0
        self.unexpected: list[str] = []
        self.sent: dict[str, bytes] = {}
        self.url = ""
        self.ended = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(CLIENTS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait_for_answers(self, count: int) -> None:
        """Returns when so many more parts are answered."""
        enough = len(self.answers) + count
        while len(self.answers) < enough:
            self._wait()

    def wait_for_refusals(self, count: int) -> None:
        """Returns when so many more requests are refused."""
        enough = self.refusals + count
        while self.refusals < enough:
            self._wait()

    def _wait(self) -> None:
        assert not self.unexpected
        self.ended.wait(0.01)

    def end(self) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join()
        assert not self.unexpected

    def _send(self, client: int) -> None:
        random_pixels = np.random.default_rng(client)
        with httpx.Client(timeout=20, verify=False) as http:
            for number in itertools.count():
                part = f"{client}-{number}"
                self.sent[part] = encode_png(random_pixels.integers(0, 256, (16, 24, 1), np.uint8))
                while not self._answered(http, part) and not self.ended.wait(0.02):
                    pass
                if self.ended.is_set():
                    return

    def _answered(self, http: httpx.Client, part: str) -> bool:
        try:
            answer = http.post(
                f"{self.url}/v1/inspect",
                params={"part_id": part, "station": "s"},
                content=self.sent[part],
                headers={"Content-Type": "image/png"},
            )
        except httpx.HTTPError:
            return False
        if answer.status_code != 200:
            if answer.status_code == 503:
                self.refusals += 1
            else:
                self.unexpected.append(answer.text)
            return False
        self.answers.setdefault(part, []).append(answer.json()["record_id"])
        return True


def start(folder: Path, url: str, *flags: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "tests.api.records.recording_server", "--record", "required"]
    command += ["--record-folder", str(folder), "--record-database", url]
    command += ["--record-free-share", "0", *flags]  # however full the disk is
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith("Serving")
    return process, line.split()[-1]


def check(folder: Path, url: str, clients: Clients, stored: Mapping[bytes, bytes] | None = None) -> int:
    """Compares what was answered with what is kept; returns how many are.

    The pictures are `stored`, by their digests; None = in the folder.
    """
    engine = open_database(url)
    with engine.connect() as connection:
        rows = connection.execute(
            select(inspections.c.id, inspections.c.part_id, inspections.c.picture)
        ).all()
        known = {bytes(sha) for sha in connection.execute(select(pictures.c.sha256)).scalars()}
    engine.dispose()
    kept = {part: (number, bytes(sha)) for number, part, sha in rows}
    assert len(kept) == len(rows), "a part is there twice"
    for part, numbers in clients.answers.items():
        number, sha = kept[part]
        assert set(numbers) == {number}
        assert sha == hashlib.sha256(clients.sent[part]).digest()
    if stored is None:
        files = (folder / "pictures").glob("??/*")
        stored = {bytes.fromhex(path.name): path.read_bytes() for path in files}
    assert set(stored) == known == {sha for _, sha in kept.values()}
    for sha, data in stored.items():
        assert hashlib.sha256(data).digest() == sha
    return len(rows)
