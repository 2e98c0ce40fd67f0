"""Jobs that two workers train together, one of them here; a stub stands for the training."""

import json
import sys

import pytest

from segdec.errors import ConfigError
from tests.api.training.training_service import JOBS
from tests.training.worker.conftest import stub_command
from tests.training.worker.test_job_run import OnPath, outputs, steps_of
from training.worker import job_run
from training.worker.command import WorkerOptions, work
from training.worker.job_run import JobRun, WorkerStoppedError
from training.worker.service_connection import LeaseLostError
from training.worker.trainer_process import cluster_variables, fit_command

pytest.importorskip("tensorflow")


@pytest.fixture
def short_waits(monkeypatch):
    """The other members of the group do nothing in this time."""
    for name in ("GRACE_S", "REASON_WAIT_S"):
        monkeypatch.setattr(job_run, name, 0.3)


def run(service, tmp_path, job, command, is_stopping=lambda: False, change=lambda _: None):
    """Works on a leased job."""
    with service.connect(change=change) as worker:
        JobRun(worker, job, tmp_path / f"worker-{job.rank}", None, is_stopping, lambda _: command).run()


def stops_with_checkpoint(ready):
    """A process that creates the file `ready` when SIGTERM lets it end with a checkpoint."""
    return [sys.executable, "-c", STOPS, str(ready)]


def ends_with(code):
    return [sys.executable, "-c", f"print('the last line'); raise SystemExit({code})"]


STOPS = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
pathlib.Path(sys.argv[1]).touch()
signal.pause()
"""
IGNORES_SIGTERM = ["sh", "-c", "trap '' TERM; sleep 1000"]
"""As a process that waits in TensorFlow for another one."""


def end_by_chief(service, chief, outcome):
    def end():
        with service.connect() as worker:
            worker.end(chief, outcome, "The chief says so.")

    return end


def report_step(service, chief):
    """The chief reports its first step: from then on all processes save a checkpoint when they stop."""
    with service.connect() as worker:
        worker.heartbeat(chief, is_training=True, progress={"stage": "joint", "step": 1}, events=[])


def test_each_process_gets_its_task_and_the_strategy(service, begin_group):
    chief, member = begin_group()
    assert " ".join(fit_command(member)).endswith("--strategy multi-worker")
    tasks = [json.loads(cluster_variables(job)["TF_CONFIG"]) for job in (chief, member)]
    assert [task["cluster"] for task in tasks] == [{"worker": ["gpu-a:2222", "gpu-b:2222"]}] * 2
    assert [task["task"] for task in tasks] == [{"type": "worker", "index": rank} for rank in (0, 1)]
    with service.connect() as worker:
        worker.end(chief, "cancelled", "")


def test_a_job_for_one_machine_has_no_cluster(service, work):
    service.order(service.data_set)
    job = work(steps=1)
    assert cluster_variables(job) == {}
    assert "--strategy" not in fit_command(job)


def test_a_member_leaves_when_the_chief_is_done_and_reports_nothing(
    service, tmp_path, begin_group, trained_model
):
    chief, member = begin_group()
    run(service, tmp_path, member, stub_command(member, trained_model, 3))
    shown = service.show(chief.id)
    assert (shown["state"], shown["progress"], outputs(service, chief.id)) == ("leased", None, [])
    assert [one["rank"] for one in shown["members"]] == [0]
    run(service, tmp_path, chief, stub_command(chief, trained_model, 3))
    assert service.show(chief.id)["state"] == "done"
    assert steps_of(service, chief.id) == [1, 2, 3]


@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        (3, "queued", "The training exited with code 3. Its last line: the last line"),
        (2, "failed", "The training exited with code 2. Its last line: the last line"),
        (69, "queued", "The training exited with code 69. Its last line: the last line"),
        (75, "queued", "Another worker of the group stopped."),
    ],
)
@pytest.mark.usefixtures("short_waits")
def test_a_member_reports_why_its_training_failed(service, tmp_path, begin_group, code, state, reason):
    chief, member = begin_group()
    run(service, tmp_path, member, ends_with(code))
    shown = service.show(chief.id)
    assert (shown["state"], shown["reason"]) == (state, f"The worker gpu-b: {reason}")
    assert outputs(service, chief.id) == ["[worker 1] the last line"]
    service.post(f"{JOBS}/{chief.id}/cancel")


@pytest.mark.parametrize("code", [69, 75])
def test_a_member_lets_the_chief_end_the_attempt(service, tmp_path, begin_group, code):
    chief, member = begin_group()
    report_step(service, chief)
    beats = OnPath("/heartbeat", end_by_chief(service, chief, "released"), 4, 4)
    run(service, tmp_path, member, ends_with(code), change=beats)
    assert service.show(chief.id)["reason"] == "The chief says so."
    service.post(f"{JOBS}/{chief.id}/cancel")


@pytest.mark.parametrize(
    ("code", "attempts", "reason"),
    [
        (69, 1, "The training exited with code 69. Its last line: the last line"),
        (75, 0, "Another worker of the group stopped."),
    ],
)
@pytest.mark.usefixtures("short_waits")
def test_the_chief_ends_the_attempt_when_the_group_was_stopped(
    service, tmp_path, begin_group, code, attempts, reason
):
    chief, _ = begin_group()
    run(service, tmp_path, chief, ends_with(code))
    shown = service.show(chief.id)
    assert (shown["state"], shown["attempts"], shown["reason"]) == ("queued", attempts, reason)
    service.post(f"{JOBS}/{chief.id}/cancel")


def test_a_member_that_stops_lets_the_chief_upload_its_checkpoint(service, tmp_path, begin_group):
    chief, member = begin_group()
    report_step(service, chief)
    stopping, beats = [], OnPath("/heartbeat", lambda: stopping.append(True), 6, 6)
    ending = OnPath("/heartbeat", end_by_chief(service, chief, "released"), 9, 9)
    ready = tmp_path / "ready"

    def change(request):
        return (beats(request) or ending(request)) if ready.exists() else None

    run(service, tmp_path, member, stops_with_checkpoint(ready), lambda: bool(stopping), change)
    assert service.show(chief.id)["reason"] == "The chief says so."
    service.post(f"{JOBS}/{chief.id}/cancel")


@pytest.mark.parametrize("rank", [0, 1])
def test_the_attempt_ends_at_once_if_a_worker_stops_before_the_first_step(
    service, tmp_path, begin_group, rank
):
    group = begin_group()
    stopping, beats = [], OnPath("/heartbeat", lambda: stopping.append(True), 6, 6)
    later = OnPath("/heartbeat", end_by_chief(service, group[0], "failed"), 200, 200)

    def change(request):
        return beats(request) or later(request)

    with pytest.raises(WorkerStoppedError):
        run(service, tmp_path, group[rank], IGNORES_SIGTERM, lambda: bool(stopping), change)
    shown = service.show(group[0].id)
    assert (shown["state"], shown["attempts"]) == ("queued", 0)
    assert shown["reason"].endswith("The worker stopped.")
    with service.connect() as worker, pytest.raises(LeaseLostError):
        worker.heartbeat(group[1 - rank], is_training=True, progress={}, events=[])
    service.post(f"{JOBS}/{shown['id']}/cancel")


def test_a_member_whose_training_was_stopped_before_the_first_step_does_not_wait(
    service, tmp_path, begin_group
):
    chief, member = begin_group()
    later = OnPath("/heartbeat", end_by_chief(service, chief, "failed"), 200, 200)
    run(service, tmp_path, member, ends_with(75), change=later)
    shown = service.show(chief.id)
    assert (shown["state"], shown["reason"]) == (
        "queued",
        "The worker gpu-b: Another worker of the group stopped.",
    )
    service.post(f"{JOBS}/{chief.id}/cancel")


def test_a_chief_that_stops_uploads_the_checkpoint_of_its_first_steps(
    service, tmp_path, begin_group, trained_model
):
    chief, _ = begin_group()
    is_stopping = lambda: "step" in (service.show(chief.id)["progress"] or {})  # noqa: E731
    with pytest.raises(WorkerStoppedError):
        run(service, tmp_path, chief, stub_command(chief, trained_model, 1000), is_stopping)
    shown = service.show(chief.id)
    assert (shown["state"], shown["attempts"]) == ("queued", 0)
    assert shown["checkpoint"]["position"].startswith("stage joint, step ")
    service.post(f"{JOBS}/{chief.id}/cancel")


@pytest.mark.usefixtures("short_waits")
def test_a_member_that_stops_releases_the_job_if_the_chief_does_not(service, tmp_path, begin_group):
    chief, member = begin_group()
    report_step(service, chief)
    stopping, beats = [], OnPath("/heartbeat", lambda: stopping.append(True), 6, 6)
    with pytest.raises(WorkerStoppedError):
        run(
            service,
            tmp_path,
            member,
            stops_with_checkpoint(tmp_path / "ready"),
            lambda: bool(stopping),
            beats,
        )
    shown = service.show(chief.id)
    assert (shown["state"], shown["attempts"]) == ("queued", 0)
    assert shown["reason"] == "The worker gpu-b: The worker stopped."
    service.post(f"{JOBS}/{chief.id}/cancel")


def test_a_member_does_not_end_its_training_itself_when_a_person_stops_the_job(
    service, tmp_path, begin_group, trained_model
):
    chief, member = begin_group()
    stop = OnPath("/heartbeat", lambda: service.post(f"{JOBS}/{chief.id}/stop") and None)
    run(service, tmp_path, member, stub_command(member, trained_model, 3), change=stop)
    assert [one["rank"] for one in service.show(chief.id)["members"]] == [0]  # its stub took all steps
    run(service, tmp_path, chief, stub_command(chief, trained_model, 1000))
    shown = service.show(chief.id)
    assert (shown["state"], shown["reason"]) == (
        "done",
        "A person ended the training with the best weights so far.",
    )


def test_an_invalid_address_is_rejected(tmp_path):
    for address in ("gpu-1", "gpu-1:x", "http://gpu-1:2222"):
        with pytest.raises(ConfigError, match=r"of --address has .* Expected host:port"):
            work(WorkerOptions(url="http://127.0.0.1:1", key_file=tmp_path / "key", address=address))
