"""Kills of the service, and of its database, while photographs are added to a data set and annotated."""

import base64
import hashlib
import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from sqlalchemy import select

from api.data_sets.tables import data_set_files
from api.database.database import open_database
from segdec import __version__
from segdec.images import encode_png
from segdec.training_schemas import WorkerIdentity
from tests.api.conftest import PNG
from tests.api.data_sets.filled_data_set import mask_of
from tests.api.data_sets.test_import_routes import ZIP, archive
from tests.api.data_sets.test_imports import PARTS
from tests.api.record.recording_clients import TIMEOUT_S, RecordingService
from training.worker.service_connection import ServiceConnection, ServiceError

CLIENTS = 3
UNLABELLED = 25
"""Photographs for which a model proposes labels while the database fails."""
PAUSE_S = 0.05
"""Between two requests of a client, which would keep the service busy otherwise."""
FLAGS = ("--local-role", "engineer")


class Sender:
    """Threads that add photographs and annotate them; `answered` are the photographs of complete requests."""

    def __init__(self, url):
        self.url, self.ended, self.answered, self.unexpected = url, threading.Event(), {}, []
        self.rejected = []
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def wait_for(self, answers, count):
        """Waits until there are `count` more answers in a list or dictionary."""
        enough = len(answers) + count
        while len(answers) < enough and not self.unexpected:
            self.ended.wait(0.01)

    def end(self):
        self.ended.set()
        for thread in self._threads:
            thread.join()

    def _send(self, client):
        pixels = np.random.default_rng(client)
        with httpx.Client(timeout=TIMEOUT_S) as http:
            for number in itertools.count():
                data = encode_png(pixels.integers(0, 256, (32, 48, 1), np.uint8))
                while not self._add(http, f"{client}-{number}", data) and not self.ended.wait(PAUSE_S):
                    pass
                if self.ended.wait(PAUSE_S):
                    return

    def _add(self, http, name, data):
        """Returns whether the photograph was added and annotated."""
        path = f"{self.url}/v1/data-sets/1/photographs"
        try:
            answer = http.post(path, params={"name": name}, content=data, headers=PNG)
            if not self._is_done(answer):
                return False
            photograph = answer.json()["photograph"]
            mask = mask_of((1, len(self.answered) % 28, len(self.answered) % 44))
            body = {"label": "dent", "mask": base64.b64encode(encode_png(mask)).decode()}
            body["based_on"] = photograph["annotation_id"]
            changed = http.put(f"{path}/{photograph['id']}/annotation", json=body)
        except httpx.HTTPError:
            return False
        if is_done := self._is_done(changed):
            self.answered[name] = data
        return is_done

    def _is_done(self, answer):
        if answer.status_code == 503 and "Retry-After" in answer.headers:
            self.rejected.append(answer)
        elif not answer.is_success:
            self.unexpected.append(answer.text)
        return answer.is_success


def check(service, folder, database, sender):
    """Checks that each answered photograph has its label, and that no file is missing or left over."""
    assert not sender.unexpected
    with httpx.Client(base_url=f"{service.url}/v1/data-sets/1", timeout=TIMEOUT_S) as http:
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
    engine = open_database(database)
    with engine.connect() as connection:
        known = {sha256.hex() for sha256 in connection.execute(select(data_set_files.c.sha256)).scalars()}
    engine.dispose()
    assert set(files) == known and not list((folder / "data_sets/unsettled").iterdir())


def add(http, data_set, name, pixels):
    """Adds a photograph; returns the path of its annotation."""
    path = f"/data-sets/{data_set}/photographs"
    added = http.post(path, params={"name": name}, content=encode_png(pixels), headers=PNG).raise_for_status()
    return f"{path}/{added.json()['photograph']['id']}/annotation"


def add_good(http, data_set, name, pixels):
    good = {"label": "good", "based_on": None}
    http.put(add(http, data_set, name, pixels), json=good).raise_for_status()


def create(service):
    httpx.post(
        f"{service.url}/v1/data-sets", json={"name": "a", "classes": ["dent"]}, timeout=TIMEOUT_S
    ).raise_for_status()


@pytest.mark.slow
def test_answered_photographs_survive_kills_and_no_file_is_left_over(tmp_path):
    folder, moments = tmp_path / "record", random.Random(0)
    database = f"sqlite:///{folder / 'record.db'}"
    service = RecordingService(folder, database, *FLAGS)
    create(service)
    sender = Sender(service.url)
    for _ in range(2):
        sender.wait_for(sender.answered, moments.randrange(3, 20))
        sender.ended.wait(moments.uniform(0.0, 0.05))
        service.kill()
        service = RecordingService(folder, database, *FLAGS)
        sender.url = service.url
    sender.end()
    check(service, folder, database, sender)


# === The database ===


def stop(postgres, sender):
    """Stops the server as a crash does, until requests were rejected."""
    postgres.stop("immediate")
    sender.wait_for(sender.rejected, CLIENTS)
    postgres.start()


def end_connections(postgres, sender):
    """Ends all connections, until requests were rejected."""
    enough = len(sender.rejected) + CLIENTS
    while len(sender.rejected) < enough and not sender.unexpected:
        postgres.end_connections()
        sender.ended.wait(0.02)


class Trainer:
    """A thread that reports and uploads chunks as a worker does, with the data set's first training job."""

    def __init__(self, url, ended):
        self.stored, self._ended, self.problem = [], ended, None
        data_set = {"data_set": 1, "data_set_version": 1, "model": "a"}
        with httpx.Client(base_url=f"{url}/v1", timeout=TIMEOUT_S) as http:
            for number in range(3):  # a training needs as many good ones
                add_good(http, 1, f"good-{number}", np.full((8, 8, 1), number, np.uint8))
            http.post("/data-sets/1/versions", json={}).raise_for_status()
            http.post("/training/jobs", json=data_set).raise_for_status()
        self._worker = ServiceConnection(url, "of-a-worker", sleep=ended.wait)
        self.job = self._worker.lease(WorkerIdentity(name="gpu", version=__version__))
        self.thread = threading.Thread(target=self._train)
        self.thread.start()

    def _train(self):
        for number in itertools.count():
            if self._ended.wait(PAUSE_S):
                return
            chunk = str(number).encode()
            digest = hashlib.sha256(chunk).hexdigest()
            try:
                self._worker.heartbeat(self.job, is_training=True, progress={"step": number}, events=[])
                self._worker.send_chunk(self.job, digest, chunk)
            except ServiceError as error:
                if "record" not in str(error):
                    self.problem = error
                    return
            else:
                self.stored.append(digest)

    def check(self):
        """Checks that the worker has the job still, with all chunks."""
        self.thread.join()
        with self._worker:
            assert self.problem is None
            assert self._worker.find_missing(self.job, self.stored) == []


class Jobs:
    """Jobs of a second data set: an import, a check and a run of proposals, each in a thread of its own."""

    def __init__(self, url, threads):
        self._threads = threads
        with httpx.Client(base_url=f"{url}/v1", timeout=TIMEOUT_S) as http:
            created = http.post("/data-sets", json={"name": "b", "classes": ["dent"]}).json()
            self._path = f"{url}/v1/data-sets/{created['id']}"
            for number in range(UNLABELLED):
                add(http, created["id"], number, np.full((32, 48, 1), number, np.uint8))
            add_good(http, created["id"], "good", np.full((32, 48, 1), UNLABELLED, np.uint8))

    def start(self):
        """Starts all of them; returns a future of each as it is after its end."""
        return [self._threads.submit(self._run, name) for name in ("archives", "check", "proposals")]

    def _run(self, name):
        body = {"content": archive(PARTS), "headers": ZIP} if name == "archives" else {"json": {}}
        while (answer := self._ask("POST", name, **body)).status_code == 503:
            time.sleep(0.05)
        # The answer about a job that was started may have been lost.
        assert answer.status_code == 202 or answer.json()["code"] == "job_running", answer.text
        shown_at = f"imports/{answer.json()['id']}" if name == "archives" else name
        while (shown := self._ask("GET", shown_at)).status_code == 503 or shown.json()["state"] == "running":
            time.sleep(0.05)
        return shown.json()

    def _ask(self, method, name, **body):
        answer = httpx.request(method, f"{self._path}/{name}", timeout=TIMEOUT_S, **body)
        assert answer.is_success or answer.status_code in (409, 503), answer.text
        return answer


@pytest.mark.slow
@pytest.mark.parametrize("fail", [stop, end_connections])
def test_answers_survive_an_outage_of_the_database(own_postgres, tmp_path, fail):
    """Annotations, jobs and a training worker continue without a restart of the service."""
    folder, keys = tmp_path / "record", tmp_path / "train.keys"
    keys.write_text(f"gpu:{hashlib.sha256(b'of-a-worker').hexdigest()}")
    service = RecordingService(folder, own_postgres.url, *FLAGS, "--train-keys", str(keys))
    create(service)
    sender = Sender(service.url)
    sender.wait_for(sender.answered, CLIENTS)
    trainer = Trainer(service.url, sender.ended)
    with ThreadPoolExecutor(3) as threads:
        jobs = Jobs(service.url, threads)
        running = jobs.start()
        sender.wait_for(sender.answered, CLIENTS)
        fail(own_postgres, sender)
        ended = [each.result() for each in running]
        assert all(
            job["state"] == "done" or job["error_cause"]["code"] == "record_unavailable" for job in ended
        ), ended
        again = [each.result() for each in jobs.start()]
        assert [job["state"] for job in again] == ["done"] * 3, again
    sender.end()
    trainer.check()
    service.stop()
    check(RecordingService(folder, own_postgres.url, *FLAGS), folder, own_postgres.url, sender)
