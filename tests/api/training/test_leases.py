"""Leases of training jobs, on SQLite and PostgreSQL; the time is that of the test."""

import threading
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from api.database.database import write_transaction
from api.errors import RequestError
from api.training.file_sets import describe_checkpoint, find_missing, store_files
from api.training.job_events import list_events
from api.training.job_view import list_workers
from api.training.jobs import cancel_job, change_job, continue_job, stop_job
from api.training.leases import MAX_ATTEMPTS, lease_job
from api.training.schemas import SentEvent
from api.training.tables import training_chunks, training_files, training_uploads
from api.training.workers import LEASE_DURATION
from segdec import __version__
from segdec.training_schemas import SentFile
from tests.api.record.databases import both_databases
from tests.api.training.conftest import WORKER

LEASE_S = LEASE_DURATION.total_seconds()
OTHER = replace(WORKER, name="gpu-2")


def add_checkpoint(jobs, job_id, version=__version__):
    """Stores a checkpoint of one file, as the route does."""
    digest = bytes(range(32))

    def change(connection):
        if connection.execute(select(func.count()).select_from(training_chunks)).scalar_one() == 0:
            connection.execute(training_chunks.insert(), {"sha256": digest, "bytes": 1})
        if find_missing(connection, job_id, [digest]):
            row = {"job_id": job_id, "chunk": digest, "key": "gpu", "sent_at": jobs.now}
            connection.execute(training_uploads.insert(), row)
        files = [SentFile(path="runs/brackets/config.toml", chunks=[digest.hex()])]
        store_files(connection, job_id, "checkpoint", files)
        described = describe_checkpoint("stage joint, step 7", version, jobs.now)
        change_job(connection, job_id, checkpoint=described, attempts=0)

    jobs.do(change)


def test_the_oldest_job_is_leased_to_one_worker(jobs):
    first, second = jobs.order(), jobs.order()
    leased = jobs.lease()
    assert (leased.id, leased.model, leased.version, leased.checkpoint) == (first, "brackets", "1", None)
    assert (leased.classes, leased.data_set_name, leased.data_set_version) == (
        ["scratch", "dent"],
        "Brackets",
        1,
    )
    assert jobs.lease(OTHER).id == second
    assert jobs.lease(replace(OTHER, name="gpu-3")) is None
    assert (jobs.show(first).state, jobs.show(first).worker) == ("leased", "gpu-1")


@both_databases
def test_a_worker_has_one_job_at_a_time(jobs):
    first, second = jobs.order(), jobs.order()
    leased, again = jobs.lease(), jobs.lease()
    assert again.code == "worker_has_job"
    assert f"The worker gpu-1 has the training job {first} already" in again.text
    [worker] = jobs.read(list_workers).workers
    assert (worker.problem, worker.job) == (again.text, first)
    assert jobs.lease(replace(WORKER, key="another key")).id == second
    jobs.end(first, leased.lease, "released", "The worker stopped.")
    assert jobs.lease().id == first
    jobs.wait(LEASE_S)
    assert jobs.lease().id == first  # of a worker that was killed


@both_databases
def test_workers_that_ask_at_the_same_time_get_different_jobs(jobs):
    ordered = {jobs.order() for _ in range(6)}
    got, start = [], threading.Barrier(8)

    def ask(number):
        start.wait()
        with write_transaction(jobs.engine) as connection:
            got.append(lease_job(connection, replace(WORKER, name=f"gpu-{number}"), jobs.now))

    threads = [threading.Thread(target=ask, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [job.id for job in got if job is not None]
    assert (sorted(ids), len(got)) == (sorted(ordered), 8)


def test_heartbeats_renew_the_lease_until_somebody_else_has_the_job(jobs):
    job_id, leased = jobs.order(), jobs.lease()
    for _ in range(5):
        jobs.wait(LEASE_S - 1)
        assert jobs.beat(job_id, leased.lease) == "continue"
        assert jobs.lease(OTHER) is None
    shown = jobs.show(job_id)
    assert (shown.state, shown.progress["step"], shown.is_silent) == ("running", 7, False)
    jobs.wait(10 * LEASE_S)  # as during a restart of the service that takes long
    assert jobs.beat(job_id, leased.lease) == "continue"
    assert jobs.lease(OTHER) is None


@both_databases
def test_a_silent_worker_loses_the_job_with_its_last_checkpoint(jobs):
    job_id, leased = jobs.order(), jobs.lease()
    add_checkpoint(jobs, job_id)
    jobs.wait(LEASE_S)
    assert jobs.show(job_id).is_silent
    again = jobs.lease(OTHER)
    assert (again.id, again.checkpoint_position) == (job_id, "stage joint, step 7")
    assert [file.path for file in again.checkpoint] == ["runs/brackets/config.toml"]
    assert again.lease != leased.lease
    for change in (
        lambda: jobs.beat(job_id, leased.lease),
        lambda: jobs.end(job_id, leased.lease, "failed", "It failed."),
    ):
        with pytest.raises(RequestError, match=r"the worker gpu-2 has it\. Stop working on it") as caught:
            change()
        assert (caught.value.status, caught.value.code) == (409, "lease_lost")
    assert jobs.show(job_id).worker == "gpu-2"


def test_a_lease_from_before_the_clock_was_set_back_ends(jobs):
    job_id, _ = jobs.order(), jobs.lease()
    jobs.wait(-86_400)
    assert jobs.lease(OTHER).id == job_id


def test_attempts_without_a_checkpoint_fail_the_job(jobs):
    job_id = jobs.order()
    for _ in range(MAX_ATTEMPTS):
        assert jobs.lease().id == job_id
        jobs.wait(LEASE_S)
    assert jobs.lease() is None
    shown = jobs.show(job_id)
    assert shown.state == "failed"
    assert shown.reason == (
        "3 attempts in a row ended without a new checkpoint. The last one: Nothing was heard of the worker "
        "gpu-1 for 120 s."
    )
    jobs.do(continue_job, job_id, "Ada", jobs.now)
    assert (jobs.lease().id, jobs.show(job_id).attempts) == (job_id, 1)


def test_checkpoints_let_a_job_continue_as_often_as_needed(jobs):
    job_id = jobs.order()
    for _ in range(3 * MAX_ATTEMPTS):
        assert jobs.lease().id == job_id
        add_checkpoint(jobs, job_id)
        jobs.wait(LEASE_S)
    assert jobs.show(job_id).state == "leased"


def test_crashes_count_and_leases_that_were_given_back_do_not(jobs):
    job_id = jobs.order()
    for _ in range(5):
        jobs.end(job_id, jobs.lease().lease, "released", "The worker stopped.")
    assert (jobs.show(job_id).state, jobs.show(job_id).attempts) == ("queued", 0)
    for _ in range(MAX_ATTEMPTS):
        assert jobs.show(job_id).state == "queued"
        lease = jobs.lease().lease
        jobs.end(job_id, lease, "crashed", "The training was killed by SIGKILL.")
    assert jobs.show(job_id).reason.endswith("The last one: The training was killed by SIGKILL.")


def test_a_failure_that_must_be_corrected_ends_the_job_and_keeps_its_checkpoint(jobs):
    job_id, leased = jobs.order(), jobs.lease()
    add_checkpoint(jobs, job_id)
    for _ in range(2):  # the answer to the first report may have been lost
        jobs.end(job_id, leased.lease, "failed", "Too few parts.")
    shown = jobs.show(job_id)
    assert (shown.state, shown.reason) == ("failed", "Too few parts.")
    assert shown.checkpoint is not None
    assert jobs.lease() is None


def test_a_queued_job_is_cancelled_at_once(jobs):
    job_id = jobs.order()
    jobs.do(cancel_job, job_id, "Ada", jobs.now)
    assert (jobs.show(job_id).state, jobs.lease()) == ("cancelled", None)
    for change in (cancel_job, stop_job):
        with pytest.raises(RequestError, match="has ended: it is cancelled"):
            jobs.do(change, job_id, "Ada", jobs.now)


def test_the_answer_to_the_heartbeat_orders_the_worker_to_cancel(jobs):
    job_id, leased = jobs.order(), jobs.lease()
    add_checkpoint(jobs, job_id)
    jobs.do(cancel_job, job_id, "Ada", jobs.now)
    assert jobs.show(job_id).request == "cancel"
    assert jobs.beat(job_id, leased.lease) == "cancel"
    jobs.end(job_id, leased.lease, "cancelled", "")
    shown = jobs.show(job_id)
    assert (shown.state, shown.request, shown.checkpoint) == ("cancelled", None, None)
    assert jobs.read(lambda connection: connection.execute(select(training_files)).all()) == []


@pytest.mark.parametrize("end", ["silent", "released", "crashed"])
def test_a_cancelled_job_is_not_queued_again(jobs, end):
    job_id, leased = jobs.order(), jobs.lease()
    jobs.do(cancel_job, job_id, "Ada", jobs.now)
    if end == "silent":
        jobs.wait(LEASE_S)
    else:
        jobs.end(job_id, leased.lease, end, "It ended.")
    assert (jobs.lease(), jobs.show(job_id).state) == (None, "cancelled")


def test_the_answer_to_the_heartbeat_orders_the_worker_to_stop_with_the_best_weights(jobs):
    job_id = jobs.order()
    with pytest.raises(RequestError, match=r"has no weights\. Cancel it instead"):
        jobs.do(stop_job, job_id, "Ada", jobs.now)
    leased = jobs.lease()
    jobs.do(stop_job, job_id, "Ada", jobs.now)
    assert jobs.beat(job_id, leased.lease) == "stop"
    jobs.do(cancel_job, job_id, "Ada", jobs.now)
    jobs.do(stop_job, job_id, "Ada", jobs.now)  # too late
    assert jobs.beat(job_id, leased.lease) == "cancel"


def test_a_worker_that_was_away_for_a_month_is_not_listed(jobs):
    jobs.lease()
    jobs.wait(31 * 86_400)
    jobs.lease(OTHER)
    assert [worker.name for worker in jobs.read(list_workers).workers] == ["gpu-2"]


@both_databases
def test_workers_with_many_names_push_none_of_another_key_off_the_list(jobs, monkeypatch):
    monkeypatch.setattr("api.training.workers.MAX_WORKERS_OF_KEY", 3)
    jobs.lease(replace(WORKER, key="another key", name="a real one"))
    for number in range(6):
        jobs.lease(replace(OTHER, name=f"name {number}"))
        jobs.wait(1)
    listed = [worker.name for worker in jobs.read(list_workers).workers]
    assert listed == ["a real one", "name 3", "name 4", "name 5"]


@both_databases
def test_long_output_is_stored_up_to_a_limit(jobs, monkeypatch):
    monkeypatch.setattr("api.training.job_events.MAX_CHARACTERS", 250)
    job_id, leased = jobs.order(), jobs.lease()
    events = [SentEvent(kind="output", content=["x" * 100])]
    for _ in range(6):
        jobs.beat(job_id, leased.lease, events=events)
    kinds = [event.kind for event in jobs.read(list_events, job_id, 0, 50).events]
    assert kinds == ["state", "state", "output", "output", "output", "state"]


def test_a_worker_that_leases_and_releases_again_and_again_fills_no_disk(jobs, monkeypatch):
    monkeypatch.setattr("api.training.job_events.MAX_STATES", 5)
    job_id = jobs.order()
    for _ in range(6):
        jobs.end(job_id, jobs.lease().lease, "released", "It stopped.")
    jobs.end(job_id, jobs.lease().lease, "failed", "Too few parts.")
    texts = [event.content for event in jobs.read(list_events, job_id, 0, 50).events]
    assert (len(texts), texts[-1]) == (6, "The job is failed. Too few parts.")


@both_databases
def test_a_reason_has_only_printable_characters(jobs):
    """PostgreSQL stores no NUL."""
    job_id, leased = jobs.order(), jobs.lease()
    jobs.end(job_id, leased.lease, "failed", "bad\0file \x1b[1m")
    assert jobs.show(job_id).reason == "bad\ufffdfile \ufffd[1m"


def test_a_checkpoint_of_another_version_is_not_continued(jobs):
    job_id, _ = jobs.order(), jobs.lease()
    add_checkpoint(jobs, job_id, version="0.0.1")
    jobs.wait(LEASE_S)
    assert jobs.lease().checkpoint is None
    texts = [event.content for event in jobs.read(list_events, job_id, 0, 50).events]
    assert texts[-1] == "Its checkpoint is of version 0.0.1, so that the training starts again."


def test_a_job_is_done_only_with_a_model(jobs):
    job_id, leased = jobs.order(), jobs.lease()
    with pytest.raises(RequestError, match=r"has no model/manifest.json\. Upload it first"):
        jobs.end(job_id, leased.lease, "done", "")
    add_checkpoint(jobs, job_id)
    model = [SentFile(path="model/manifest.json", chunks=[bytes(range(32)).hex()])]
    jobs.do(store_files, job_id, "result", model)
    for _ in range(2):
        jobs.end(job_id, leased.lease, "done", "", {"rating": {"level": "usable"}})
    shown = jobs.show(job_id)
    assert (shown.state, shown.outcome["rating"]["level"], shown.checkpoint) == ("done", "usable", None)


def test_events_are_stored_in_their_order_up_to_a_limit(jobs, monkeypatch):
    monkeypatch.setattr("api.training.job_events.MAX_EVENTS", 3)
    job_id, leased = jobs.order(), jobs.lease()
    for step in range(3):
        contents = {"metrics": {"step": step}, "output": [f"line {step}"]}
        events = [SentEvent(kind=kind, content=content) for kind, content in contents.items()]
        jobs.beat(job_id, leased.lease, events=events)
    page = jobs.read(list_events, job_id, 0, 3)
    assert [event.content for event in page.events] == [
        "Ordered by Ada.",
        "The worker gpu-1 has the job.",
        {"step": 0},
    ]
    rest = jobs.read(list_events, job_id, page.next_after, 50)
    assert [event.content for event in rest.events] == [
        ["line 0"],
        {"step": 1},
        "Later metrics and output are not stored: there are too many.",
    ]
    assert rest.next_after is None


@both_databases
def test_a_page_of_events_is_limited_in_characters(jobs, monkeypatch):
    monkeypatch.setattr("api.training.job_events.MAX_PAGE_CHARACTERS", 210)
    job_id, leased = jobs.order(), jobs.lease()
    first = jobs.read(list_events, job_id, 0, 50).events[-1].id
    texts = ["a" * 100, "b" * 96, "c" * 500, "d" * 205]  # as JSON four more
    jobs.beat(job_id, leased.lease, events=[SentEvent(kind="output", content=[text]) for text in texts])
    pages, after = [], first
    while after is not None:
        page = jobs.read(list_events, job_id, after, 50)
        pages.append([event.content[0][0] for event in page.events])
        after = page.next_after
    assert pages == [["a", "b"], ["c"], ["d"]]
