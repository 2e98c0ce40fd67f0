"""Clients that send photographs to a recording service that fails, and checks of the result."""

import hashlib
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
from sqlalchemy import select

from api.database.database import open_database
from api.record.initialization import initialize_record, remove_orphaned_pictures
from api.record.tables import inspections, pictures
from segdec.images import encode_png

ROOT = Path(__file__).parents[3]
CLIENTS = 8
TIMEOUT_S = 120
"""Longer than any answer takes on a busy machine."""


class Clients:
    """Send each photograph until it is answered; store the answers by part."""

    def __init__(self) -> None:
        self.answers: dict[str, list[int]] = {}
        self.rejections = 0
        self.unexpected: list[str] = []
        self.sent: dict[str, bytes] = {}
        self.url = ""
        self.ended = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(CLIENTS)]

    def start(self, service: "RecordingService") -> None:
        self.url = service.url
        for thread in self._threads:
            thread.start()

    def wait_for_answers(self, count: int) -> None:
        """Waits until `count` more parts are answered."""
        self._wait_for(lambda: len(self.answers), count)

    def wait_for_rejections(self, count: int) -> None:
        """Waits until `count` more requests are rejected."""
        self._wait_for(lambda: self.rejections, count)

    def _wait_for(self, counted: Callable[[], int], count: int) -> None:
        enough = counted() + count
        while counted() < enough:
            assert not self.unexpected
            self.ended.wait(0.01)

    def end(self) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join()
        assert not self.unexpected

    def _send(self, client: int) -> None:
        random_pixels = np.random.default_rng(client)
        with httpx.Client(timeout=TIMEOUT_S, verify=False) as http:
            for number in itertools.count():
                part = f"{client}-{number}"
                self.sent[part] = encode_png(random_pixels.integers(0, 256, (16, 24, 1), np.uint8))
                while not self._answered(http, part) and not self.ended.wait(0.02):
                    pass
                if self.ended.is_set():
                    return

    def _answered(self, http: httpx.Client, part: str) -> bool:
        try:
            url, headers = f"{self.url}/v1/inspect?part_id={part}&station=s", {"Content-Type": "image/png"}
            answer = http.post(url, content=self.sent[part], headers=headers)
        except httpx.HTTPError:
            return False
        match answer.status_code:
            case 200:
                self.answers.setdefault(part, []).append(answer.json()["record_id"])
            case 503:
                self.rejections += 1
            case _:
                self.unexpected.append(answer.text)
        return answer.status_code == 200


class RecordingService:
    """A service that records, in a process of its own, with a stub for its model."""

    module = "tests.api.record.recording_server"

    def __init__(self, folder: Path, database: str, *flags: str, **environment: str) -> None:
        command = [sys.executable, "-m", self.module, "--record", "required"]
        command += ["--record-folder", str(folder), "--record-database", database]
        command += ["--record-free-share", "0", *flags]  # however full the disk is
        variables = {**os.environ, **environment}
        self._process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        assert line.startswith("Serving")
        self.url = line.split()[-1]

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()


def check(folder: Path, url: str, clients: Clients) -> int:
    """Compares the answers with the record and its pictures; returns the number of inspections."""
    engine, table = open_database(url), inspections.c
    remove_orphaned_pictures(engine, initialize_record(engine, folder, None))
    with engine.connect() as connection:
        rows = connection.execute(select(table.id, table.part_id, table.picture)).all()
        known = {bytes(sha) for sha in connection.execute(select(pictures.c.sha256)).scalars()}
    engine.dispose()
    kept = {part: (number, bytes(sha)) for number, part, sha in rows}
    assert len(kept) == len(rows), "a part is stored twice"
    for part, numbers in clients.answers.items():
        number, sha = kept[part]
        assert set(numbers) == {number}
        assert sha == hashlib.sha256(clients.sent[part]).digest()
    stored = {bytes.fromhex(path.name): path.read_bytes() for path in (folder / "pictures").glob("??/*")}
    assert set(stored) == known == {sha for _, sha in kept.values()}
    for sha, data in stored.items():
        assert hashlib.sha256(data).digest() == sha
    return len(rows)
