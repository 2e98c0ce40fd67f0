"""What a worker can do with the lease, the chunks and the name of a worker that has another key."""

import hashlib
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from api.accounts.keys import Keyring
from api.training.job_view import list_workers
from segdec import __version__
from segdec.errors import ServiceError
from segdec.images import encode_png
from segdec.training_schemas import SentFile, WorkerIdentity
from tests.api.record.databases import both_databases
from tests.api.training.conftest import WORKER
from tests.api.training.training_service import OTHER_KEY, TRAIN_KEY
from training.worker.service_connection import LeaseLostError

WEIGHTS = b"weights of a training"
DIGEST = hashlib.sha256(WEIGHTS).hexdigest()
PANEL = encode_png(np.zeros((2, 2), np.uint8))
FILES = [SentFile(path="runs/a", chunks=[DIGEST])]


@pytest.fixture
def begin(service):
    """Orders and leases a job: key, name of the worker → connection, job. The jobs end after the test."""
    begun = []

    def begin_one(key=TRAIN_KEY, name="gpu-1"):
        worker = service.connect(key)
        service.order(service.data_set)
        begun.append((worker, worker.lease(WorkerIdentity(name=name, version=__version__))))
        return begun[-1]

    yield begin_one
    for worker, job in begun:
        with suppress(LeaseLostError), worker:
            worker.end(job, "cancelled", "")


def replace_key(service, old, new):
    """Writes another key under the same name, as an administrator does who then sends SIGHUP."""
    path = service.app.state.settings.train_keys
    old, new = (hashlib.sha256(key.encode()).hexdigest() for key in (old, new))
    path.write_text(path.read_text().replace(old, new))
    service.app.state.keyring.replace_with(Keyring.read(service.app.state.settings))


# === Leases ===


def test_a_lease_is_useless_with_another_key(service, begin):
    owner, job = begin()
    owner.send_chunk(job, DIGEST, WEIGHTS)
    owner.send_checkpoint(job, FILES, "step 1")
    with service.connect(OTHER_KEY) as thief:
        for attempt in (
            lambda: thief.heartbeat(job, is_training=True, progress={}, events=[]),
            lambda: thief.read_manifest(job),
            lambda: thief.read_data_file(job, DIGEST),
            lambda: thief.find_missing(job, [DIGEST]),
            lambda: thief.send_chunk(job, DIGEST, WEIGHTS),
            lambda: thief.read_chunk(job, DIGEST),
            lambda: thief.send_checkpoint(job, FILES, "step 2"),
            lambda: thief.send_result(job, FILES),
            lambda: thief.send_panel(job, PANEL),
            lambda: thief.end(job, "failed", "It failed."),
        ):
            with pytest.raises(LeaseLostError, match="or another key took it"):
                attempt()
    assert service.show(job.id)["checkpoint"]["position"] == "step 1"
    assert owner.heartbeat(job, is_training=True, progress={}, events=[]).command == "continue"


def test_a_new_key_of_the_same_name_continues(service, begin):
    owner, job = begin()
    owner.send_chunk(job, DIGEST, WEIGHTS)
    replace_key(service, TRAIN_KEY, "the-next-key")
    try:
        with pytest.raises(ServiceError, match="The API key is not known here"):
            owner.heartbeat(job, is_training=True, progress={}, events=[])
        with service.connect("the-next-key") as renewed:
            assert renewed.heartbeat(job, is_training=True, progress={}, events=[]).command == "continue"
            renewed.send_checkpoint(job, FILES, "step 1")
    finally:
        replace_key(service, "the-next-key", TRAIN_KEY)


# === Chunks ===


def test_a_digest_reads_nothing_of_another_job(begin):
    """Who knows the digests of a model's files, from its manifest for example, does not get the files."""
    owner, job = begin()
    owner.send_chunk(job, DIGEST, WEIGHTS)
    thief, other = begin(OTHER_KEY, "gpu-2")
    for confirm in (lambda: None, lambda: owner.send_checkpoint(job, FILES, "step 1")):
        confirm()
        assert thief.find_missing(other, [DIGEST]) == [DIGEST]
        for attempt in (
            lambda: thief.send_checkpoint(other, FILES, "step 1"),
            lambda: thief.send_result(other, FILES),
            lambda: thief.read_chunk(other, DIGEST),
        ):
            with pytest.raises(ServiceError) as refusal:
                attempt()
            assert refusal.value.code in ("missing_chunks", "chunk_not_found")
    thief.send_chunk(other, DIGEST, WEIGHTS)
    thief.send_checkpoint(other, FILES, "step 1")
    assert thief.find_missing(other, [DIGEST]) == owner.find_missing(job, [DIGEST]) == []


def test_two_jobs_that_upload_the_same_chunk_at_the_same_time_keep_it(begin):
    first, job = begin()
    second, other = begin(OTHER_KEY, "gpu-2")
    for worker, of_worker in ((first, job), (second, other)):
        worker.send_chunk(of_worker, DIGEST, WEIGHTS)
    second.send_result(other, FILES)
    second.end(other, "failed", "It failed.")
    first.send_checkpoint(job, FILES, "step 1")
    assert first.read_chunk(job, DIGEST) == WEIGHTS


# === Names ===


OTHER_OF_NAME = replace(WORKER, key="another key", machine={"gpus": "8"}, address="elsewhere:2222")


@both_databases
def test_a_name_of_another_key_is_another_worker(jobs):
    first, leased = jobs.order(), jobs.lease()
    assert jobs.lease(OTHER_OF_NAME) is None
    jobs.beat(first, leased.lease)
    other, one = jobs.read(list_workers).workers
    assert (one.key, one.machine, one.address, one.job) == (WORKER.key, {"gpus": "1"}, None, first)
    assert (other.key, other.machine, other.job) == ("another key", {"gpus": "8"}, None)


def test_workers_of_one_key_have_a_limited_number_of_jobs(jobs, monkeypatch):
    monkeypatch.setattr("api.training.leases.MAX_WORKERS_OF_KEY", 2)
    leases = [(jobs.order(), jobs.lease(replace(WORKER, name=f"name {number}"))) for number in range(2)]
    last, refused = jobs.order(), jobs.lease(replace(WORKER, name="name 2"))
    assert (refused.code, refused.cause.values) == (None, {"key": WORKER.key, "limit": 2})
    assert jobs.lease(replace(WORKER, key="another key")).id == last
    job_id, leased = leases[0]
    jobs.end(job_id, leased.lease, "failed", "It failed.")
    assert jobs.lease(replace(WORKER, name="name 2")) is None  # nothing waits
