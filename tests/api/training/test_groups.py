"""Training jobs that several workers train together; the time is that of the test."""

from dataclasses import replace

import pytest

from api.errors import RequestError
from api.training.groups import WAIT_DURATION
from api.training.job_events import list_events
from api.training.job_view import list_workers
from api.training.jobs import cancel_job, stop_job
from api.training.leases import MAX_ATTEMPTS, find_held, find_leased
from api.training.schemas import SentEvent
from api.training.workers import LEASE_DURATION
from tests.api.record.databases import both_databases
from tests.api.training.conftest import WORKER
from tests.api.training.test_leases import add_checkpoint

LEASE_S, WAIT_S = LEASE_DURATION.total_seconds(), WAIT_DURATION.total_seconds()
A, B, C = (
    replace(WORKER, name=name, key=f"key of {name}", address=f"{name}:2222")
    for name in ("gpu-a", "gpu-b", "gpu-c")
)
ADDRESSES = ["gpu-a:2222", "gpu-b:2222"]


def problem_of(jobs, name):
    return next(worker.problem for worker in jobs.read(list_workers).workers if worker.name == name)


def order_known(jobs, *workers, machines=2):
    """Orders a joint job when these workers are known; returns its id."""
    for worker in workers:
        assert jobs.lease(worker) is None
    return jobs.order(machines=machines)


def begin(jobs):
    """Orders a job for two machines, which both get; returns its id and the leases of both."""
    job_id = order_known(jobs, A, B)
    jobs.lease(B)
    chief, other = jobs.lease(A), jobs.lease(B)
    assert (chief.id, other.id) == (job_id, job_id)
    return job_id, chief.lease, other.lease


def assert_lost(jobs, job_id, *leases):
    for lease in leases:
        with pytest.raises(RequestError, match="Stop working on it") as caught:
            jobs.beat(job_id, lease)
        assert (caught.value.status, caught.value.code) == (409, "lease_lost")


# === Waiting ===


@both_databases
def test_a_joint_job_begins_when_enough_workers_wait(jobs):
    job_id = order_known(jobs, A, B)
    waiting = jobs.lease(B)
    assert (waiting.code, waiting.text) == (
        None,
        f"The training job {job_id} is for 2 machines; waiting now: 1.",
    )
    assert (jobs.show(job_id).state, jobs.show(job_id).waiting) == ("queued", 1)
    assert problem_of(jobs, "gpu-b") == waiting.text
    jobs.wait(5)
    chief = jobs.lease(A)
    other = jobs.lease(B)
    assert [(one.id, one.rank, one.addresses) for one in (chief, other)] == [
        (job_id, 0, ADDRESSES),
        (job_id, 1, ADDRESSES),
    ]
    shown = jobs.show(job_id)
    assert (shown.state, shown.worker, shown.attempts, shown.waiting) == ("leased", "gpu-a", 1, 0)
    assert [(member.rank, member.worker) for member in shown.members] == [(0, "gpu-a"), (1, "gpu-b")]
    places = {worker.name: (worker.job, worker.rank) for worker in jobs.read(list_workers).workers}
    assert places == {"gpu-a": (job_id, 0), "gpu-b": (job_id, 1)}
    texts = [event.content for event in jobs.read(list_events, job_id, 0, 9).events]
    assert texts[-1] == "The workers gpu-a, gpu-b have the job."


def test_a_worker_without_an_address_gets_only_jobs_for_one_machine(jobs):
    joint = jobs.order(machines=2)
    refused = jobs.lease()
    assert refused.text == (
        f"The training job {joint} is for 2 machines, and this worker has no address: start it with "
        "--address HOST:PORT."
    )
    single = jobs.order()
    assert (jobs.lease().id, problem_of(jobs, "gpu-1")) == (single, None)


def test_a_worker_that_does_not_ask_any_more_leaves_the_group(jobs):
    job_id = order_known(jobs, A, B, C)
    jobs.lease(A)
    jobs.wait(WAIT_S + 1)
    assert jobs.show(job_id).waiting == 0
    assert jobs.lease(B).text.endswith("waiting now: 1.")
    chief = jobs.lease(C)
    assert chief.addresses == ["gpu-b:2222", "gpu-c:2222"]


def test_later_jobs_for_one_machine_wait_only_if_enough_workers_are_known(jobs):
    joint = order_known(jobs, A)
    single = jobs.order()
    assert jobs.lease(A).id == single  # gpu-b never sent a request
    jobs.lease(B)
    later = jobs.order()
    assert jobs.lease(B).text == f"The training job {joint} is for 2 machines; waiting now: 1."
    jobs.wait(LEASE_S)  # gpu-a sends no request any more
    assert jobs.lease(B).id == single
    assert jobs.show(later).state == "queued"


def test_an_older_job_for_one_machine_goes_first(jobs):
    for worker in (A, B):
        jobs.lease(worker)
    single, joint = jobs.order(), jobs.order(machines=2)
    assert jobs.lease(A).id == single
    assert jobs.lease(B).text == f"The training job {joint} is for 2 machines; waiting now: 1."


def test_two_joint_jobs_do_not_have_half_of_the_workers_each(jobs):
    first, second = order_known(jobs, A, B), jobs.order(machines=2)
    jobs.lease(A)
    assert [jobs.show(number).waiting for number in (first, second)] == [1, 0]
    assert jobs.lease(B).id == first
    assert jobs.lease(A).id == first


def test_a_joint_job_for_which_too_few_workers_are_known_does_not_block_a_smaller_one(jobs):
    large, small = order_known(jobs, A, B, machines=3), jobs.order(machines=2)
    jobs.lease(A)
    assert jobs.lease(B).id == small
    assert jobs.lease(A).id == small
    assert jobs.show(large).state == "queued"
    jobs.wait(LEASE_S)
    refused = jobs.lease(C)
    assert refused.text == (
        f"The training job {large} is for 3 machines; workers with an address that were heard of lately: 1."
    )


def test_workers_from_before_the_clock_was_set_back_do_not_block_a_smaller_job(jobs):
    for worker in (A, B):
        jobs.lease(worker)
    jobs.wait(-86_400)
    jobs.order(machines=2)
    small = jobs.order()
    assert jobs.lease(C).id == small


@both_databases
def test_workers_with_the_same_address_count_once(jobs):
    same_machine = replace(B, name="gpu-z")
    job_id = order_known(jobs, A, B, same_machine)
    jobs.lease(B)
    assert jobs.lease(same_machine).text.endswith("waiting now: 1.")
    assert jobs.lease(A).addresses == ADDRESSES
    assert jobs.show(job_id).members[1].worker == "gpu-b"


@both_databases
def test_a_worker_of_another_key_does_not_get_a_known_address(jobs):
    other = replace(B, name="gpu-0", key="another key")
    order_known(jobs, A, B)
    refused = jobs.lease(other)
    assert (refused.code, refused.cause.code) == (None, "worker_address_taken")
    assert "'gpu-b:2222'" in refused.text
    assert jobs.lease(B).text.endswith("waiting now: 1.")
    assert jobs.lease(A).addresses == ADDRESSES
    assert jobs.lease(B).rank == 1
    jobs.wait(LEASE_S + 1)  # nobody has heard of the two since
    assert jobs.lease(other).cause.code != "worker_address_taken"
    assert jobs.lease(B).cause.code == "worker_address_taken"


def test_nobody_else_gets_the_place_of_a_member(jobs):
    job_id = order_known(jobs, A, B)
    jobs.lease(B)
    jobs.lease(A)
    assert jobs.lease(replace(B, key="another key")) is None
    assert jobs.lease(B).rank == 1
    again = jobs.lease(B)  # as after a restart
    assert (again.code, f"has the training job {job_id} already" in again.text) == ("worker_has_job", True)


# === Reports ===


def test_only_the_chief_reports_and_uploads(jobs):
    job_id, chief, other = begin(jobs)
    events = [SentEvent(kind="output", content=["[worker 1] a line"])]
    assert jobs.beat(job_id, chief) == "continue"
    assert jobs.beat(job_id, other, progress={"step": 99}, events=events) == "continue"
    shown = jobs.show(job_id)
    assert (shown.state, shown.progress["step"]) == ("running", 7)
    assert jobs.read(list_events, job_id, 0, 9).events[-1].content == ["[worker 1] a line"]
    row, member = jobs.read(find_held, job_id, jobs.sent(other))  # may fetch the data
    assert (row["id"], member["rank"]) == (job_id, 1)
    assert jobs.read(find_leased, job_id, jobs.sent(chief))["id"] == job_id
    with pytest.raises(RequestError) as caught:
        jobs.read(find_leased, job_id, jobs.sent(other))
    assert caught.value.code == "lease_lost"


def test_members_learn_whether_the_chief_has_taken_steps_in_this_attempt(jobs):
    job_id, chief, other = begin(jobs)
    assert not jobs.renew(job_id, other, {"step": 7}).has_steps  # only the chief reports
    jobs.renew(job_id, chief, {"phase": "training"})
    assert not jobs.renew(job_id, other, {}).has_steps
    jobs.renew(job_id, chief, {"phase": "training", "step": 7})
    assert jobs.renew(job_id, other, {}).has_steps
    jobs.end(job_id, chief, "released", "The worker stopped.")
    jobs.lease(B)
    jobs.lease(A)
    assert not jobs.renew(job_id, jobs.lease(B).lease, {}).has_steps


@both_databases
def test_the_chief_continues_from_the_checkpoint(jobs):
    job_id, chief, other = begin(jobs)
    add_checkpoint(jobs, job_id)
    jobs.end(job_id, chief, "released", "The worker stopped.")
    jobs.lease(A)
    other = jobs.lease(B)
    chief = jobs.lease(A)
    assert (chief.rank, chief.checkpoint_position, len(chief.checkpoint)) == (0, "stage joint, step 7", 1)
    assert (other.rank, other.checkpoint, other.checkpoint_position) == (1, None, None)


def test_a_member_leaves_when_its_part_is_done(jobs):
    job_id, chief, other = begin(jobs)
    jobs.end(job_id, other, "done")
    assert jobs.beat(job_id, chief) == "continue"
    assert_lost(jobs, job_id, other)
    single = jobs.order()
    assert jobs.lease(B).id == single
    jobs.wait(LEASE_S - 1)
    assert jobs.beat(job_id, chief) == "continue"


def test_all_members_get_the_order_to_stop_or_to_cancel(jobs):
    job_id, chief, other = begin(jobs)
    jobs.do(stop_job, job_id, "Ada", jobs.now)
    assert [jobs.beat(job_id, lease) for lease in (chief, other)] == ["stop", "stop"]
    jobs.do(cancel_job, job_id, "Ada", jobs.now)
    assert [jobs.beat(job_id, lease) for lease in (chief, other)] == ["cancel", "cancel"]
    jobs.end(job_id, other, "cancelled")
    assert (jobs.show(job_id).state, jobs.show(job_id).members) == ("cancelled", [])
    assert_lost(jobs, job_id, chief)


# === Lost members ===


@pytest.mark.parametrize("lost", ["gpu-a", "gpu-b"])
def test_the_attempt_ends_for_all_when_a_member_is_lost(jobs, lost):
    job_id, chief, other = begin(jobs)
    add_checkpoint(jobs, job_id)
    remaining = other if lost == "gpu-a" else chief
    jobs.wait(LEASE_S - 1)
    assert jobs.beat(job_id, remaining) == "continue"
    jobs.wait(1)
    jobs.beat(job_id, remaining)
    shown = jobs.show(job_id)
    assert (shown.state, shown.members) == ("queued", [])
    assert shown.reason == f"Nothing was heard of the worker {lost} for 120 s."
    assert_lost(jobs, job_id, chief, other)
    jobs.lease(A)
    jobs.lease(B)
    again = jobs.lease(A)
    assert (again.checkpoint_position, jobs.show(job_id).attempts) == ("stage joint, step 7", 1)
    assert_lost(jobs, job_id, chief, other)
    assert jobs.beat(job_id, again.lease) == "continue"


@both_databases
def test_a_lost_member_is_found_by_any_worker_that_asks(jobs):
    job_id, chief, other = begin(jobs)
    jobs.wait(LEASE_S - 1)
    jobs.beat(job_id, chief)
    jobs.wait(1)
    jobs.lease(C)
    assert jobs.show(job_id).reason == "Nothing was heard of the worker gpu-b for 120 s."
    assert_lost(jobs, job_id, chief, other)


def test_a_member_that_never_fetches_its_lease_counts_as_one_attempt(jobs):
    job_id = order_known(jobs, A, B)
    for attempt in range(MAX_ATTEMPTS):
        jobs.lease(B)
        assert jobs.lease(A).rank == 0
        assert jobs.show(job_id).attempts == attempt + 1
        jobs.wait(LEASE_S)
        jobs.lease(C)
    shown = jobs.show(job_id)
    assert (shown.state, shown.members) == ("failed", [])
    assert shown.reason.startswith("3 attempts in a row ended without a new checkpoint.")


def test_a_group_continues_after_the_service_was_away(jobs):
    job_id, chief, other = begin(jobs)
    jobs.wait(10 * LEASE_S)
    assert jobs.beat(job_id, chief) == "continue"
    jobs.wait(LEASE_S - 1)
    assert jobs.beat(job_id, chief) == "continue"  # the other has as much time to report
    assert jobs.beat(job_id, other) == "continue"
    assert jobs.show(job_id).state == "running"


@pytest.mark.parametrize(
    ("outcome", "state", "attempts"),
    [("crashed", "queued", 1), ("released", "queued", 0), ("failed", "failed", 1)],
)
def test_a_member_ends_the_attempt_for_all(jobs, outcome, state, attempts):
    job_id, chief, other = begin(jobs)
    jobs.end(job_id, other, outcome, "The training exited with code 3.")
    shown = jobs.show(job_id)
    assert (shown.state, shown.attempts) == (state, attempts)
    assert shown.reason == "The worker gpu-b: The training exited with code 3."
    assert_lost(jobs, job_id, chief, other)
