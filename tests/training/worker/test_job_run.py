"""Jobs of a worker with a service in the same process; a stub stands for the training."""

import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from api.training.file_sets import UNUSED_AFTER
from segdec.artifact import open_artifact
from segdec.artifact.signatures import TrustedKeys, generate_key_pair, read_private_key
from segdec.errors import ServiceError
from tests.api.training.training_service import JOBS
from tests.training.worker.conftest import IDENTITY
from training.worker import job_run, progress
from training.worker.file_sets import MAX_UPLOADS, upload_and_report
from training.worker.job_run import WorkerDiskFullError, WorkerStoppedError
from training.worker.trainer_process import fit_command

pytest.importorskip("tensorflow")


def outputs(service, job_id):
    events = service.get(f"{JOBS}/{job_id}/events").json()["events"]
    return [line for event in events if event["kind"] == "output" for line in event["content"]]


def steps_of(service, job_id, kind="train"):
    events = service.get(f"{JOBS}/{job_id}/events").json()["events"]
    records = [event["content"] for event in events if event["kind"] == "metrics"]
    return [record["step"] for record in records if record["kind"] == kind]


class OnPath:
    """Answers the nth request whose path ends with `end` by a call, which may return an answer."""

    def __init__(self, end, answer, first=1, last=1):
        self.end, self.answer, self.first, self.last, self.count = end, answer, first, last, 0

    def __call__(self, request):
        if not request.url.path.endswith(self.end):
            return None
        self.count += 1
        return self.answer() if self.first <= self.count <= self.last else None


def unavailable():
    body = {"title": "Unavailable", "status": 503, "detail": "The record cannot be used now: no space left."}
    return httpx.Response(503, json={**body, "code": "record_unavailable", "request_id": "x"})


def test_a_job_is_trained_and_its_model_uploaded(service, work, tmp_path):
    job_id = service.order(service.data_set)
    work(steps=5)
    shown = service.show(job_id)
    assert shown["reason"] is None
    assert (shown["state"], shown["worker"], shown["checkpoint"]) == ("done", "gpu-1", None)
    assert shown["outcome"]["metrics"] == {"average_precision": 0.5}
    assert (steps_of(service, job_id), outputs(service, job_id)) == ([1, 2, 3, 4, 5], ["begins after step 0"])
    assert steps_of(service, job_id, "val") == [2, 4]
    assert service.get(f"{JOBS}/{job_id}/report").text == "<p>A report"
    assert list((tmp_path / "worker" / "jobs").iterdir()) == []


def test_a_worker_that_stops_gives_the_job_back_and_another_one_continues(service, work):
    job_id = service.order(service.data_set)
    with pytest.raises(WorkerStoppedError):
        work(is_stopping=lambda: service.show(job_id)["checkpoint"] is not None)
    shown = service.show(job_id)
    assert (shown["state"], shown["attempts"], shown["reason"]) == ("queued", 0, "The worker stopped.")
    step = int(shown["checkpoint"]["position"].removeprefix("stage joint, step "))
    work()
    assert service.show(job_id)["state"] == "done"
    assert outputs(service, job_id) == ["begins after step 0", f"begins after step {step}"]
    assert steps_of(service, job_id) == list(range(1, 11))  # none twice, none missing
    assert steps_of(service, job_id, "val") == [2, 4, 6, 8, 10]


def test_records_up_to_a_checkpoint_are_reported_with_it(service, work, monkeypatch):
    """A worker that is killed sends no further heartbeat, and the next one reports what follows."""
    job_id = service.order(service.data_set)

    def kill():
        if service.show(job_id)["checkpoint"] is not None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(job_run, "HEARTBEAT_S", 1e6)
        work(is_stopping=kill)
    step = int(service.show(job_id)["checkpoint"]["position"].removeprefix("stage joint, step "))
    assert steps_of(service, job_id)[:step] == list(range(1, step + 1))
    assert steps_of(service, job_id, "val")[: step // 2] == list(range(2, step + 1, 2))


def test_a_crashed_training_continues_and_fails_after_three_attempts_without_progress(service, work):
    job_id = service.order(service.data_set)
    work(fault="crash")
    shown = service.show(job_id)
    assert shown["state"] == "queued"
    assert shown["reason"].startswith("The training was killed by SIGKILL.")
    work()
    assert service.show(job_id)["state"] == "done"
    assert outputs(service, job_id) == ["begins after step 0", "begins after step 3"]


def test_an_error_to_correct_fails_the_job_and_it_can_be_continued(service, work):
    job_id = service.order(service.data_set)
    work(fault="error")
    shown = service.show(job_id)
    assert (shown["state"], shown["reason"]) == ("failed", "Too few parts. Add photographs.")
    assert service.post(f"{JOBS}/{job_id}/continue").json()["state"] == "queued"
    work()
    assert service.show(job_id)["state"] == "done"


def test_a_full_disk_of_the_worker_gives_the_job_to_another_one(service, work):
    job_id = service.order(service.data_set)
    with pytest.raises(WorkerDiskFullError, match="Free space there, then start the worker again"):
        work(fault="full disk")
    shown = service.show(job_id)
    assert shown["state"] == "queued"
    assert shown["reason"].startswith("The disk of the worker cannot be used: ")


def test_a_person_cancels(service, work):
    job_id = service.order(service.data_set)
    cancel = OnPath("/checkpoint", lambda: service.post(f"{JOBS}/{job_id}/cancel") and None)
    work(steps=1000, change=cancel)
    assert service.show(job_id)["state"] == "cancelled"


def test_a_person_ends_the_training_with_the_best_weights(service, work):
    job_id = service.order(service.data_set)
    stop = OnPath("/checkpoint", lambda: service.post(f"{JOBS}/{job_id}/stop") and None)
    work(steps=1000, change=stop)
    shown = service.show(job_id)
    assert (shown["state"], shown["outcome"]["metrics"]) == ("done", {"average_precision": 0.5})
    assert shown["reason"] == "A person ended the training with the best weights so far."


def test_many_lines_fit_into_the_heartbeats(service, work, tmp_path):
    """Whose JSON the service limits in size, and in values, for which it counts commas."""
    job_id = service.order(service.data_set)
    lines = [f"{number} {',' * 490}" for number in range(500)]
    (tmp_path / "lines").write_text("\n".join(lines))
    work(steps=3, fault=f"prints {tmp_path / 'lines'}")
    assert service.show(job_id)["state"] == "done"
    assert outputs(service, job_id)[1:] == lines


def test_a_lost_lease_ends_the_training(service, work, capsys):
    job_id = service.order(service.data_set)
    lose = OnPath(
        "/heartbeat", lambda: service.run(lambda: service.features.training.write(_lose, job_id)), 9, 9
    )
    work(steps=1000, change=lose)
    assert f"Job {job_id}: This lease of the training job {job_id} has ended" in capsys.readouterr().out
    assert (service.show(job_id)["state"], service.show(job_id)["worker"]) == ("leased", "gpu-2")


def _lose(connection, job_id):
    from api.training.jobs import change_job

    change_job(connection, job_id, lease="1" * 32, worker="gpu-2", state="leased")


def test_a_service_that_cannot_store_gets_everything_later(service, work):
    """As with a full disk of the service, or while it restarts: during training, and at the end."""
    job_id = service.order(service.data_set)
    failures = [
        OnPath("/checkpoint", unavailable, 1, 6),
        OnPath("/heartbeat", unavailable, 2, 4),
        OnPath("/manifest", unavailable, 1, 5),
        OnPath("/result", unavailable, 1, 6),
        OnPath("/end", unavailable, 1, 3),
    ]
    work(steps=5, change=lambda request: next(filter(None, (each(request) for each in failures)), None))
    assert service.show(job_id)["state"] == "done"
    assert steps_of(service, job_id) == [1, 2, 3, 4, 5]


def delete_unused_chunks(service):
    """Deletes all chunks that no checkpoint and no result names."""
    later = datetime.now(UTC) + UNUSED_AFTER + timedelta(hours=1)
    service.run(lambda: service.features.training.delete_unused(later))


def test_chunks_that_are_deleted_before_they_are_reported_are_sent_again(service, work):
    """The last checkpoint, too, which is sent only once."""
    job_id = service.order(service.data_set)
    deletions = [
        OnPath("/checkpoint", lambda: delete_unused_chunks(service), 2, 2),
        OnPath("/result", lambda: delete_unused_chunks(service)),
    ]

    def delete(request):
        for each in deletions:
            each(request)

    with pytest.raises(WorkerStoppedError):
        work(change=delete, is_stopping=lambda: service.show(job_id)["checkpoint"] is not None)
    assert deletions[0].count == 3
    saved = service.show(job_id)["checkpoint"]["position"].removeprefix("stage joint, step ")
    work(change=delete)
    assert service.show(job_id)["state"] == "done"
    assert outputs(service, job_id) == ["begins after step 0", f"begins after step {saved}"]
    assert deletions[1].count == 2


def test_uploads_end_when_chunks_are_deleted_each_time(service, tmp_path):
    service.order(service.data_set)
    (tmp_path / "state").write_bytes(b"weights")
    report = OnPath("/checkpoint", lambda: delete_unused_chunks(service), last=MAX_UPLOADS)

    def upload(worker, job):
        upload_and_report(
            worker,
            job,
            tmp_path,
            [tmp_path / "state"],
            lambda files: worker.send_checkpoint(job, files, "step 1"),
            lambda: None,
        )

    with service.connect(change=report) as worker:
        job = worker.lease(IDENTITY)
        with pytest.raises(ServiceError, match="Not stored: 1 of the chunks") as rejected:
            upload(worker, job)
        assert (rejected.value.code, report.count) == ("missing_chunks", MAX_UPLOADS)
        upload(worker, job)
    assert service.show(job.id)["checkpoint"]["position"] == "step 1"


def test_a_revoked_key_ends_the_worker_and_the_job_waits(service, work):
    job_id = service.order(service.data_set)
    body = {"title": "Unauthorized", "status": 401, "detail": "The API key is not known here."}
    refuse = {**body, "code": "unknown_key", "request_id": "x"}
    revoked = OnPath("/checkpoint", lambda: httpx.Response(401, json=refuse))
    with pytest.raises(ServiceError, match="The API key is not known here"):
        work(steps=1000, change=revoked)
    assert service.show(job_id)["state"] == "running"  # until the lease expires


def test_a_model_is_signed(service, work, tmp_path):
    private = tmp_path / "key.pem"
    public, _ = generate_key_pair(private)
    job_id = service.order(service.data_set)
    work(steps=2, signing_key=read_private_key(private))
    assert service.show(job_id)["state"] == "done"
    trained = tmp_path / "trained"
    service.run(lambda: _write_result(service.features.training, job_id, trained))
    artifact = open_artifact(trained, TrustedKeys.read(public))
    artifact.check_files()
    assert artifact.signed_by


async def _write_result(training, job_id, folder):
    from api.training.result_model import find_done_job, write_model

    await write_model(training, await training.read(find_done_job, job_id), folder)


def test_the_command_has_the_settings_of_the_job(service):
    def words_of(**settings):
        service.order(service.data_set, **settings)
        with service.connect() as worker:
            job = worker.lease(IDENTITY)
            worker.end(job, "cancelled", "")
            return " ".join(fit_command(job))

    assert "--resume --defect=scratch --defect=dent --name" in words_of()
    assert words_of(minutes=5).endswith("--minutes 5 --runs runs --out model")
    assert words_of(all_steps=True, area=4096).endswith(
        "--minutes 720 --runs runs --out model --all-steps --area 4096"
    )


def test_the_completed_steps_are_those_of_all_stages(tmp_path):
    log = tmp_path / "log.jsonl"
    record = {"kind": "train", "stage": "joint", "stage_index": 2, "step": 4}
    log.write_text(json.dumps(record))
    report = progress.ProgressReport(log)
    report.read_log()
    assert report.progress["step"] == 4 and "steps" not in report.progress  # there is no experiment
    stages = "[stages.segment]\nsteps = 5\n[stages.joint]\nsteps = 10\n"
    (tmp_path / "config.toml").write_text(f'name = "brackets"\n{stages}')
    report.set_phase("training")
    log.write_text(json.dumps({**record, "step": 6}))
    report.read_log()
    assert (report.progress["steps"], report.progress["of_steps"]) == (11, 15)


def test_progress_is_reported(service, work, monkeypatch):
    monkeypatch.setattr(progress, "MAX_EVENTS", 3)
    job_id = service.order(service.data_set, minutes=3)
    reported = []
    work(steps=4, change=OnPath("/end", lambda: reported.append(service.show(job_id)["progress"])))
    assert reported[0]["phase"] == "uploading the model"
    assert steps_of(service, job_id) == [1, 2, 3, 4]
