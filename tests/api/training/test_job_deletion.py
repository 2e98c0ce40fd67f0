"""Jobs that have ended are deleted, with all that belongs to them."""

import threading

import pytest
from sqlalchemy import func, select

from api.database.database import write_transaction
from api.errors import RequestError
from api.record.storage.pictures import FolderPictures
from api.record.tables import audit
from api.training.file_sets import store_files
from api.training.job_deletion import delete_job
from api.training.job_view import show_job
from api.training.jobs import continue_job
from api.training.tables import training_events, training_files
from api.training.training_store import NewChunk, delete_unused_chunks, store_chunk
from segdec.training_schemas import SentFile
from tests.api.record.databases import both_databases


def delete(jobs, job_id, served=()):
    jobs.do(delete_job, job_id, served, "Ada")


def count(jobs, table):
    return jobs.read(lambda connection: connection.execute(select(func.count()).select_from(table)).scalar())


def finish(jobs, outcome="failed"):
    """Orders a job whose worker ends it so; returns its id."""
    job_id, leased = jobs.order(), jobs.lease()
    jobs.end(job_id, leased.lease, outcome)
    return job_id


def code_of(change):
    with pytest.raises(RequestError) as caught:
        change()
    return caught.value.status, caught.value.code


@both_databases
def test_a_deleted_job_leaves_nothing_but_an_entry_in_the_audit_log(jobs, tmp_path):
    stored = FolderPictures(tmp_path / "training")
    job_id, other = finish(jobs), finish(jobs, "cancelled")
    chunk, unnamed = (NewChunk(data, job_id, "gpu", jobs.now) for data in (b"weights", b"not named yet"))
    for sent in (chunk, unnamed):
        store_chunk(jobs.engine, stored, sent, lambda _: None)
    files = [SentFile(path="model/manifest.json", chunks=[chunk.sha256.hex()])]
    jobs.do(store_files, job_id, "result", files)
    jobs.do(store_files, job_id, "checkpoint", files)
    delete(jobs, job_id)
    assert code_of(lambda: jobs.read(show_job, job_id, jobs.now)) == (404, "job_not_found")
    assert jobs.read(show_job, other, jobs.now).state == "cancelled"
    assert count(jobs, training_files) == 0
    kept = jobs.read(lambda connection: set(connection.execute(select(training_events.c.job_id)).scalars()))
    assert kept == {other}
    last = select(audit.c.who, audit.c.what, audit.c.before).order_by(audit.c.id.desc()).limit(1)
    who, what, before = jobs.read(lambda connection: connection.execute(last).one())
    assert (who, what) == ("Ada", "delete a training")
    assert f'"job": {job_id}, "model": "brackets", "version": "1"' in before
    assert delete_unused_chunks(jobs.engine, stored, jobs.now) == 2
    assert not stored.contains(chunk.sha256)


@both_databases
def test_a_version_is_never_given_to_another_training(jobs):
    first, second = finish(jobs), finish(jobs)
    delete(jobs, second)
    delete(jobs, first)
    third = jobs.order()
    assert jobs.read(show_job, third, jobs.now).version == "3"
    assert jobs.read(show_job, jobs.order("plates"), jobs.now).version == "1"


@both_databases
@pytest.mark.parametrize("change", [continue_job, delete_job])
def test_of_simultaneous_changes_one_comes_first(jobs, change):
    """A deleted job cannot be continued, and one that was continued waits and cannot be deleted."""
    job_id, outcomes, start = finish(jobs), [], threading.Barrier(2)

    def attempt(one, *args):
        start.wait()
        try:
            with write_transaction(jobs.engine) as connection:
                one(connection, job_id, *args)
            outcomes.append("done")
        except RequestError as refusal:
            outcomes.append(refusal.code)

    args = ("Ada", jobs.now) if change is continue_job else ((), "Ada")
    threads = [
        threading.Thread(target=attempt, args=(delete_job, (), "Bob")),
        threading.Thread(target=attempt, args=(change, *args)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) in (["done", "job_not_found"], ["done", "job_not_ended"])
