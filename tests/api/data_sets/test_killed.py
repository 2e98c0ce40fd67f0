"""Kills of the service while photographs are added to a data set and annotated."""

import base64
import hashlib
import itertools
import random
import sqlite3
import threading
from contextlib import closing

import httpx
import numpy as np
import pytest

from segdec.images import encode_png
from tests.api.conftest import PNG
from tests.api.data_sets.filled_data_set import mask_of
from tests.api.record.recording_clients import RecordingService

CLIENTS = 3


class Sender:
    """Threads that add photographs and annotate them; `answered` are the photographs of complete requests."""

    def __init__(self, url):
        self.url, self.ended, self.answered, self.unexpected = url, threading.Event(), {}, []
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def end(self):
        self.ended.set()
        for thread in self._threads:
            thread.join()

    def _send(self, client):
        pixels = np.random.default_rng(client)
        with httpx.Client(timeout=20) as http:
            for number in itertools.count():
                data = encode_png(pixels.integers(0, 256, (32, 48, 1), np.uint8))
                while not self.ended.is_set() and not self._add(http, f"{client}-{number}", data):
                    self.ended.wait(0.02)
                if self.ended.is_set():
                    return

    def _add(self, http, name, data):
        """Returns whether the photograph was added and annotated."""
        path = f"{self.url}/v1/data-sets/1/photographs"
        try:
            answer = http.post(path, params={"name": name}, content=data, headers=PNG)
            if answer.status_code not in (200, 201):
                self.unexpected += [answer.text] if answer.status_code != 503 else []
                return False
            photograph = answer.json()["photograph"]
            mask = mask_of((1, len(self.answered) % 28, len(self.answered) % 44))
            body = {"label": "dent", "mask": base64.b64encode(encode_png(mask)).decode()}
            body["based_on"] = photograph["annotation_id"]
            changed = http.put(f"{path}/{photograph['id']}/annotation", json=body)
        except httpx.HTTPError:
            return False
        if changed.status_code == 200:
            self.answered[name] = data
        return changed.status_code == 200


@pytest.mark.slow
def test_answered_photographs_survive_kills_and_no_file_is_left_over(tmp_path):
    folder, moments = tmp_path / "record", random.Random(0)
    database = f"sqlite:///{folder / 'record.db'}"
    flags = ("--local-role", "engineer")
    service = RecordingService(folder, database, *flags)
    httpx.post(f"{service.url}/v1/data-sets", json={"name": "a", "classes": ["dent"]}).raise_for_status()
    sender = Sender(service.url)
    for _ in range(2):
        enough = len(sender.answered) + moments.randrange(3, 20)
        while len(sender.answered) < enough and not sender.unexpected:
            sender.ended.wait(0.01)
        sender.ended.wait(moments.uniform(0.0, 0.05))
        service.kill()
        service = RecordingService(folder, database, *flags)
        sender.url = service.url
    sender.end()
    assert not sender.unexpected
    with httpx.Client(base_url=f"{service.url}/v1/data-sets/1", timeout=20) as http:
        assert http.post("/next", json={"session": "a"}).status_code == 200  # removes what a crash left
        for name, data in sender.answered.items():
            (photograph,) = (
                one
                for one in http.get("/photographs", params={"search": name}).json()["photographs"]
                if one["name"] == name
            )
            assert photograph["label"] == "dent"
            assert http.get(f"/photographs/{photograph['id']}/image").content == data
    service.stop()
    files = {path.name: path.read_bytes() for path in (folder / "data_sets").glob("??/*")}
    assert all(hashlib.sha256(data).hexdigest() == name for name, data in files.items())
    with closing(sqlite3.connect(folder / "record.db")) as connection:
        known = {row[0].hex() for row in connection.execute("SELECT sha256 FROM data_set_files")}
    assert set(files) == known and not list((folder / "data_sets/unsettled").iterdir())
