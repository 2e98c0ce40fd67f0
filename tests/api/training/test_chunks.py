"""Chunks of checkpoints and results: stored once, deleted when no file has them any more."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import select

from api.errors import RequestError
from api.record.storage.pictures import FolderPictures, Space
from api.training import chunk_limits
from api.training.chunk_limits import check_space, count_unconfirmed
from api.training.file_sets import UNUSED_AFTER, list_files, store_files
from api.training.tables import training_chunks
from api.training.training_store import NewChunk, delete_unused_chunks, store_chunk
from segdec.training_schemas import SentFile
from tests.api.record.databases import both_databases

LATER_S = UNUSED_AFTER.total_seconds() + 1


@pytest.fixture
def stored(tmp_path):
    return FolderPictures(tmp_path / "training")


@pytest.fixture
def put(jobs, stored):
    """Stores a chunk for a job; returns its digest in hexadecimal."""

    def put_one(job_id, data, key="key of gpu-1"):
        chunk = NewChunk(data, job_id, key, jobs.now)
        store_chunk(jobs.engine, stored, chunk, lambda _: None)
        return chunk.sha256.hex()

    return put_one


def rows(jobs):
    return set(
        jobs.read(lambda connection: connection.execute(select(training_chunks.c.sha256)).scalars().all())
    )


def files_of(stored):
    return {path.name for path in Path(stored.location).glob("??/*")}


def delete(jobs, stored):
    return delete_unused_chunks(jobs.engine, stored, jobs.now)


@both_databases
def test_a_new_checkpoint_replaces_the_former_one_and_keeps_what_they_share(jobs, stored, put):
    job_id = jobs.order()
    shared, old, new = (put(job_id, data) for data in (b"shared", b"old", b"new"))
    jobs.do(store_files, job_id, "checkpoint", [SentFile(path="a", chunks=[shared, old, shared])])
    jobs.wait(LATER_S)
    assert delete(jobs, stored) == 1  # `new`, whose upload was abandoned
    new, uploading = put(job_id, b"new"), put(job_id, b"uploading")
    jobs.do(store_files, job_id, "checkpoint", [SentFile(path="a", chunks=[shared, new])])
    assert delete(jobs, stored) == 1  # `old`, at once
    assert files_of(stored) == {shared, new, uploading}
    jobs.wait(LATER_S)
    assert delete(jobs, stored) == 1
    assert files_of(stored) == {shared, new}
    assert jobs.read(list_files, job_id, "checkpoint") == [SentFile(path="a", chunks=[shared, new])]


def test_a_chunk_of_two_jobs_stays_until_both_have_ended(jobs, stored, put):
    one, other = jobs.order(), jobs.order()
    for job_id in (one, other):
        chunk = put(job_id, b"shared")
        jobs.do(store_files, job_id, "result", [SentFile(path="model/a", chunks=[chunk])])
    jobs.do(store_files, one, "result", [SentFile(path="model/a", chunks=[put(one, b"another")])])
    jobs.wait(LATER_S)
    assert delete(jobs, stored) == 0
    assert chunk in files_of(stored)


def test_a_chunk_that_arrives_again_counts_as_new(jobs, stored, put):
    job_id = jobs.order()
    chunk = put(job_id, b"a")
    jobs.wait(LATER_S)
    assert put(job_id, b"a") == chunk
    assert delete(jobs, stored) == 0
    jobs.wait(LATER_S)
    assert (delete(jobs, stored), files_of(stored), rows(jobs)) == (1, set(), set())


def test_an_upload_from_before_the_clock_was_set_back_ends(jobs, stored, put):
    put(jobs.order(), b"a")
    jobs.wait(-LATER_S)
    assert delete(jobs, stored) == 1


# === Space ===


def check(jobs, key="key of gpu-1", space=None, free_share=0.1):
    """Returns what `check_space` says; None if chunks may stay."""
    try:
        jobs.read(check_space, key, space, free_share, 5)
    except RequestError as error:
        assert (error.status, error.code, error.headers["Retry-After"]) == (503, "no_space", "5")
        return str(error)
    return None


@both_databases
def test_chunks_that_no_job_has_are_limited_for_each_key_and_for_all(jobs, put, monkeypatch):
    monkeypatch.setattr(chunk_limits, "MAX_UNCONFIRMED", 25)
    monkeypatch.setattr(chunk_limits, "MAX_UNCONFIRMED_OF_KEY", 10)
    job_id = jobs.order()
    chunks = [put(job_id, b"10 bytes.."), put(job_id, b"x")]
    assert "workers with the key 'key of gpu-1'" in check(jobs)
    assert check(jobs, "another key") is None
    put(job_id, b"9 bytes..", key="another key")
    put(job_id, b"6 byte", key="a third key")
    assert "Chunks of all workers" in check(jobs, "another key")
    jobs.do(store_files, job_id, "checkpoint", [SentFile(path="a", chunks=chunks)])
    assert (check(jobs), check(jobs, "another key")) == (None, None)
    put(job_id, b"x")  # is sent again, although the checkpoint has it
    assert jobs.read(count_unconfirmed) == 15


@both_databases
def test_chunks_that_arrive_at_the_same_time_do_not_exceed_the_limit(jobs, stored, monkeypatch):
    monkeypatch.setattr(chunk_limits, "MAX_UNCONFIRMED_OF_KEY", 25)
    of_jobs, start, refused = [jobs.order(), jobs.order()], threading.Barrier(8), []

    def send(number):
        chunk = NewChunk(b"10 bytes %d" % number, of_jobs[number % 2], "key of gpu-1", jobs.now)
        start.wait()
        try:
            limit = lambda connection: check_space(connection, chunk.key, None, 0.1, 5)  # noqa: E731
            store_chunk(jobs.engine, stored, chunk, limit)
        except RequestError as error:
            refused.append(error.code)

    threads = [threading.Thread(target=send, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["no_space"] * 6
    assert {bytes(row).hex() for row in rows(jobs)} == files_of(stored)
    assert len(files_of(stored)) == 2


def test_chunks_leave_a_part_of_the_free_share_and_of_the_free_space(jobs, put):
    put(jobs.order(), bytes(200))
    assert check(jobs, space=Space(total=10_000, free=500)) is None
    assert "trainings leave 0.00 GB." in check(jobs, space=Space(total=10_000, free=499))
    assert check(jobs, space=Space(total=10_000, free=200), free_share=0.0) is None
    assert "take 0.00 GB" in check(jobs, space=Space(total=10_000, free=199), free_share=0.0)
