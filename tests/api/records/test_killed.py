"""A service that is killed while it records: what was answered is there, and nothing is there twice."""

import hashlib
import itertools
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import numpy as np
import pytest
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
        self.sent: dict[str, bytes] = {}
        self.url = ""
        self.ended = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(CLIENTS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join()

    def _send(self, client: int) -> None:
        random_pixels = np.random.default_rng(client)
        for number in itertools.count():
            part = f"{client}-{number}"
            self.sent[part] = encode_png(random_pixels.integers(0, 256, (16, 24, 1), np.uint8))
            while not self._answered(part):
                if self.ended.wait(0.02):
                    return

    def _answered(self, part: str) -> bool:
        try:
            answer = httpx.post(
                f"{self.url}/v1/inspect",
                params={"part_id": part, "station": "s"},
                content=self.sent[part],
                headers={"Content-Type": "image/png"},
                timeout=20,
            )
        except httpx.HTTPError:
            return False
        if answer.status_code != 200:
            assert answer.status_code == 503, answer.text
            return False
        self.answers.setdefault(part, []).append(answer.json()["record_id"])
        return True


def start(folder: Path, url: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "tests.api.records.recording_server", "--record", "required"]
    command += ["--record-folder", str(folder), "--record-database", url]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith("Serving")
    return process, line.split()[-1]


def check(folder: Path, url: str, clients: Clients) -> int:
    """Compares what was answered with what is kept; returns how many are."""
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
    files = {bytes.fromhex(path.name): path for path in (folder / "pictures").glob("??/*")}
    assert set(files) == known == {sha for _, sha in kept.values()}
    for sha, path in files.items():
        assert hashlib.sha256(path.read_bytes()).digest() == sha
    return len(rows)


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_what_was_answered_outlives_a_kill_and_is_there_once(database_url, tmp_path, kills):
    folder, clients, moments = tmp_path / "kept", Clients(), random.Random(0)
    process, clients.url = start(folder, database_url)
    clients.start()
    for _ in range(kills):
        clients.ended.wait(moments.uniform(0.05, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process, clients.url = start(folder, database_url)
    clients.end()
    process.terminate()
    process.wait()
    process.stdout.close()
    process, _ = start(folder, database_url)  # its start sweeps
    process.terminate()
    process.wait()
    process.stdout.close()
    assert check(folder, database_url, clients) >= len(clients.answers) > 0
