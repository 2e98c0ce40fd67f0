"""The routes of training jobs, for engineers and for workers; nothing is trained."""

import hashlib
import struct
from contextlib import suppress

import numpy as np
import pytest

from api.training import chunk_limits
from datasets.loading import load_dataset
from segdec import __version__
from segdec.errors import ServiceError
from segdec.images import decode_image, encode_png
from segdec.training_schemas import SentFile, WorkerIdentity
from tests.api.conftest import problem
from tests.api.training.training_service import JOBS, TRAIN_KEY
from training.worker.data_folder import fetch_data
from training.worker.file_sets import download_files, upload_files
from training.worker.service_connection import LeaseLostError, is_temporary

WORKER = "/v1/training/worker"
IDENTITY = WorkerIdentity(name="gpu-1", version=__version__, machine={"gpus": "1"})
KEY = {"X-API-Key": TRAIN_KEY}
PANEL = encode_png(np.zeros((2, 2), np.uint8))
HUGE_PANEL = PANEL[:16] + struct.pack(">II", 100_000, 100_000) + PANEL[24:]


@pytest.fixture
def leased(service):
    """A leased job and the connection of its worker."""
    with service.connect() as worker:
        while (job := worker.lease(IDENTITY)) is not None:  # those of other tests
            worker.end(job, "cancelled", "")
        service.order(service.data_set, classes=["scratch"])
        job = worker.lease(IDENTITY)
        yield worker, job
        with suppress(LeaseLostError):
            worker.end(job, "cancelled", "")


def write(folder, **contents):
    """Writes files; `__` in a name stands for `/`, and `_dot_` for a dot."""
    paths = []
    for name, content in contents.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        paths.append(path)
    return paths


# === Engineers ===


def test_a_job_is_ordered_and_listed(service):
    job_id = service.order(service.data_set, minutes=12, encoder="mobilenet", classes=["scratch"])
    shown = service.show(job_id)
    assert (shown["state"], shown["created_by"], shown["data_set_name"]) == ("queued", "ada", "Brackets")
    assert shown["settings"] == {
        "minutes": 12.0,
        "all_steps": False,
        "encoder": "mobilenet",
        "area": None,
        "classes": ["scratch"],
    }
    again = service.show(service.order(service.data_set, retrain_of=job_id, minutes=5))
    assert again["settings"] == {**shown["settings"], "minutes": 5.0}
    assert int(again["version"]) == int(shown["version"]) + 1
    page = service.get(JOBS, params={"limit": 1, "state": "queued"}).json()
    assert [job["id"] for job in page["jobs"]] == [again["id"]]
    assert page["next_before"] == again["id"]
    page = service.get(JOBS, params={"limit": 1, "before": again["id"]}).json()
    assert [job["id"] for job in page["jobs"]] == [job_id]
    cancelled = service.post(f"{JOBS}/{job_id}/cancel").json()
    assert cancelled["state"] == "cancelled"
    changes = service.get("/v1/audit").json()["changes"]
    assert [one["what"] for one in changes[:3]] == [
        "cancel a training",
        "order a training",
        "order a training",
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"data_set": 999}, (404, "data_set_not_found")),
        ({"data_set_version": 2}, (404, "version_not_found")),
        ({"model": "../brackets"}, (400, "bad_model_name")),
        ({"model": ".hidden"}, (400, "bad_model_name")),
        ({"model": "Gehäuse"}, (400, "bad_model_name")),
        *[({"model": name}, (400, "bad_model_name")) for name in ("aliases.json", "Labels.JSON", "parts.")],
        *[({"model": name}, (400, "bad_model_name")) for name in ("NUL", "com1", "aux.old")],
        ({"encoder": "mobilnet"}, (400, "unknown_encoder")),
        ({"classes": ["burr"]}, (400, "unknown_class")),
        ({"classes": []}, (400, "unknown_class")),
        ({"retrain_of": 999}, (404, "job_not_found")),
        ({"minutes": 0}, (400, "bad_json")),
        ({"minutes": 1e-300}, (400, "bad_json")),
        ({"minutes": 1e9}, (400, "bad_json")),
        ({"all_steps": "yes"}, (400, "bad_json")),
        ({"area": 10}, (400, "bad_json")),
        ({"machines": 0}, (400, "bad_json")),
        ({"machines": 17}, (400, "bad_json")),
        ({"machines": "2"}, (400, "bad_json")),
        ({"unheard": 1}, (400, "bad_json")),
    ],
)
def test_an_order_that_cannot_be_trained_is_rejected(service, change, expected):
    body = {"data_set": service.data_set, "data_set_version": 1, "model": "brackets", **change}
    assert problem(service.post(JOBS, json=body)) == expected


def test_a_version_with_too_few_good_photographs_is_not_trained(service):
    data_set = service.fill("Few", {1: ("good", None), 2: ("scratch", None), 3: ("good", None)})
    before = service.get(JOBS).json()
    answer = service.post(JOBS, json={"data_set": data_set, "data_set_version": 1, "model": "few"})
    assert problem(answer) == (409, "too_few_good")
    assert "has 2 good photographs. Expected at least 3" in answer.json()["detail"]
    assert service.get(JOBS).json() == before


def test_a_training_of_all_steps_has_a_longer_limit(service):
    all_steps = service.order(service.data_set, all_steps=True)
    assert _duration(service, all_steps) == (True, 720.0)
    assert _duration(service, service.order(service.data_set, retrain_of=all_steps)) == (True, 720.0)
    again = service.order(service.data_set, retrain_of=all_steps, minutes=5)
    assert _duration(service, again) == (True, 5.0)
    again = service.order(service.data_set, retrain_of=again, all_steps=False)
    assert _duration(service, again) == (False, 30.0)
    again = service.order(service.data_set, retrain_of=service.order(service.data_set, minutes=3))
    assert _duration(service, again) == (False, 3.0)


def _duration(service, job_id):
    settings = service.show(job_id)["settings"]
    return settings["all_steps"], settings["minutes"]


def test_what_does_not_exist_yet(service):
    job_id = service.order(service.data_set)
    path = f"{JOBS}/{job_id}"
    assert problem(service.get(f"{path}/panel")) == (404, "no_panel")
    assert problem(service.get(f"{path}/report")) == (404, "no_report")
    assert problem(service.post(f"{path}/stop")) == (409, "job_not_started")
    assert problem(service.post(f"{path}/continue")) == (409, "job_not_failed")
    assert problem(service.post(f"{path}/use")) == (409, "job_not_done")
    for name in ("", "/events", "/panel", "/report"):
        assert problem(service.get(f"{JOBS}/999999{name}")) == (404, "job_not_found")
    for name in ("cancel", "stop", "continue", "use"):
        assert problem(service.post(f"{JOBS}/999999/{name}")) == (404, "job_not_found")


def test_a_worker_whose_job_was_deleted_gets_another_one(leased, service):
    worker, job = leased
    assert problem(service.delete(f"{JOBS}/{job.id}")) == (409, "job_not_ended")
    worker.end(job, "failed", "It failed.")
    assert service.delete(f"{JOBS}/{job.id}").status_code == 204
    with pytest.raises(LeaseLostError, match="There is no training job"):
        worker.heartbeat(job, is_training=True, progress={}, events=[])
    with pytest.raises(LeaseLostError):
        worker.end(job, "done", "")
    for path in ("", "/events", "/report"):
        assert problem(service.get(f"{JOBS}/{job.id}{path}")) == (404, "job_not_found")


# === Workers ===


def test_a_worker_fetches_the_data_of_its_job(leased, tmp_path):
    worker, job = leased
    seen = []
    fetch_data(worker, job, tmp_path / "files", tmp_path / "data", lambda *numbers: seen.append(numbers))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]  # the job does not learn dents
    assert (tmp_path / "data" / "classes.txt").read_text() == "scratch\n"
    (mask,) = (tmp_path / "data" / "masks").iterdir()
    values = decode_image(mask.read_bytes(), "mask").pixels
    assert {int(value) for value in values.ravel()} == {0, 1, 255}
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "files").iterdir()}
    fetch_data(worker, job, tmp_path / "files", tmp_path / "data", lambda *_: None)
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "files").iterdir()} == before
    with pytest.raises(ServiceError, match="has no file"):
        worker.read_data_file(job, hashlib.sha256(b"of another data set").hexdigest())


def test_a_job_without_classes_of_defects_has_a_folder_that_can_be_read(leased, tmp_path):
    worker, job = leased
    good = job.model_copy(
        update={"classes": [], "settings": job.settings.model_copy(update={"classes": None})}
    )
    fetch_data(worker, good, tmp_path / "files", tmp_path / "data", lambda *_: None)
    read = load_dataset("manifest", tmp_path / "data")
    assert (read.classes, read.problems, {item.label for item in read.items}) == (("good", "defect"), (), {0})


def test_files_are_uploaded_in_chunks_and_downloaded(leased, tmp_path, monkeypatch):
    monkeypatch.setattr("training.worker.file_sets.CHUNK_BYTES", 10)
    worker, job = leased
    contents = {"runs__a_dot_toml": b"0123456789" * 3 + b"abc", "runs__b": b"", "runs__c": b"0123456789"}
    paths = write(tmp_path / "job", **contents)
    files = upload_files(worker, job, tmp_path / "job", paths, lambda: None)
    assert [len(file.chunks) for file in files] == [4, 1, 1]
    worker.send_checkpoint(job, files, "stage joint, step 5")
    sent = []
    monkeypatch.setattr(worker, "send_chunk", lambda *words: sent.append(words))
    assert upload_files(worker, job, tmp_path / "job", paths, lambda: None) == files
    assert sent == []
    download_files(worker, job, files, tmp_path / "restored", lambda: None)
    restored = {path.name: path.read_bytes() for path in (tmp_path / "restored" / "runs").iterdir()}
    assert restored == {"a.toml": contents["runs__a_dot_toml"], "b": b"", "c": b"0123456789"}


def test_the_end_of_a_job_shows_its_report_and_picture(service, leased, tmp_path):
    worker, job = leased
    worker.send_panel(job, PANEL)
    events = [{"kind": "metrics", "content": {"step": 1, "loss": 0.5}}, {"kind": "output", "content": ["a"]}]
    words = {"is_training": True, "progress": {"phase": "training"}, "events": events}
    assert worker.heartbeat(job, **words).command == "continue"
    assert service.show(job.id)["state"] == "running"
    paths = write(tmp_path, model__manifest_dot_json=b"{}", report_dot_html=b"<p>Report")
    worker.send_result(job, upload_files(worker, job, tmp_path, paths, lambda: None))
    worker.end(job, "done", "", {"rating": {"level": "usable"}})
    shown = service.show(job.id)
    assert (shown["state"], shown["outcome"]["rating"]["level"]) == ("done", "usable")
    report = service.get(f"{JOBS}/{job.id}/report")
    assert (report.text, "sandbox" in report.headers["Content-Security-Policy"]) == ("<p>Report", True)
    assert service.get(f"{JOBS}/{job.id}/panel").content == PANEL
    found = service.get(f"{JOBS}/{job.id}/events").json()["events"]
    assert [event["content"] for event in found][2:4] == [{"step": 1, "loss": 0.5}, ["a"]]
    (one,) = service.get("/v1/training/workers").json()["workers"]
    assert (one["name"], one["key"], one["machine"], one["job"]) == ("gpu-1", "gpu", {"gpus": "1"}, None)


def test_a_worker_of_another_version_is_refused(service, leased):
    worker, _ = leased
    with pytest.raises(ServiceError, match=r"The worker has version '0\.0\.1', the service") as refusal:
        worker.lease(WorkerIdentity(name="old", version="0.0.1"))
    assert (refusal.value.status, refusal.value.code) == (409, "worker_version")
    old = next(one for one in service.get("/v1/training/workers").json()["workers"] if one["name"] == "old")
    assert "Install the version of the service" in old["problem"]
    service.run(lambda: service.features.training.write(_forget_worker))


@pytest.mark.parametrize(
    "address", ["gpu-1", "gpu-1:0", "http://gpu-1:2222", "gpu 1:2222", ":2222", "x" * 260 + ":1"]
)
def test_a_hostile_address_of_a_worker_is_rejected(service, address):
    body = {"name": "gpu-9", "version": __version__, "address": address}
    answer = service.request("POST", f"{WORKER}/lease", json=body, headers=KEY)
    assert problem(answer) == (400, "bad_json")


def test_a_job_for_two_machines(service, leased):
    worker, other = leased
    worker.end(other, "cancelled", "")
    a, b = (
        IDENTITY.model_copy(update={"name": f"gpu-{name}", "address": f"gpu-{name}:2222"}) for name in "ab"
    )
    assert (worker.ask_for_job(a).job, worker.ask_for_job(b).job) == (None, None)
    job_id = service.order(service.data_set, machines=2)
    waiting = worker.ask_for_job(b)
    assert waiting.reason == f"The training job {job_id} is for 2 machines; waiting now: 1."
    assert (service.show(job_id)["machines"], service.show(job_id)["waiting"]) == (2, 1)
    chief, member = worker.lease(a), worker.lease(b)
    assert (chief.rank, member.rank, member.addresses) == (0, 1, ["gpu-a:2222", "gpu-b:2222"])
    workers = {one["name"]: one for one in service.get("/v1/training/workers").json()["workers"]}
    assert (workers["gpu-b"]["address"], workers["gpu-b"]["rank"]) == ("gpu-b:2222", 1)
    assert worker.read_manifest(member) == worker.read_manifest(chief)
    for attempt in (
        lambda: worker.find_missing(member, []),
        lambda: worker.send_chunk(member, hashlib.sha256(b"x").hexdigest(), b"x"),
        lambda: worker.send_panel(member, PANEL),
    ):
        with pytest.raises(LeaseLostError):
            attempt()
    worker.end(member, "crashed", "The training was killed by SIGKILL.")
    shown = service.show(job_id)
    assert shown["reason"] == "The worker gpu-b: The training was killed by SIGKILL."
    with pytest.raises(LeaseLostError):
        worker.heartbeat(chief, is_training=True, progress={}, events=[])
    assert service.post(f"{JOBS}/{job_id}/cancel").json()["state"] == "cancelled"


def test_a_worker_gets_no_second_job_and_asks_again_later(leased):
    worker, job = leased
    with pytest.raises(ServiceError, match=f"gpu-1 has the training job {job.id} already") as refusal:
        worker.lease(IDENTITY)
    assert (refusal.value.status, is_temporary(refusal.value)) == (409, True)


def test_a_key_cannot_fill_the_disk_with_chunks(leased, monkeypatch):
    worker, job = leased
    monkeypatch.setattr(chunk_limits, "MAX_UNCONFIRMED_OF_KEY", 100)
    chunks = [bytes([number]) * 60 for number in range(2)]
    digests = [hashlib.sha256(chunk).hexdigest() for chunk in chunks]
    worker.send_chunk(job, digests[0], chunks[0])
    with pytest.raises(ServiceError, match="Chunks of workers with the key 'gpu'") as refusal:
        worker.send_chunk(job, digests[1], chunks[1])
    assert (refusal.value.code, is_temporary(refusal.value)) == ("no_space", True)
    assert worker.find_missing(job, digests) == digests[1:]
    worker.send_checkpoint(job, [SentFile(path="a", chunks=digests[:1])], "step 1")
    worker.send_chunk(job, digests[1], chunks[1])


def _forget_worker(connection):
    from api.training.tables import training_workers

    connection.execute(training_workers.delete().where(training_workers.c.name == "old"))


def test_nothing_is_done_with_the_lease_of_another_worker(leased):
    worker, job = leased
    other = job.model_copy(update={"lease": "0" * 32})
    digest = hashlib.sha256(b"x").hexdigest()
    for attempt in (
        lambda: worker.heartbeat(other, is_training=True, progress={}, events=[]),
        lambda: worker.read_manifest(other),
        lambda: worker.read_data_file(other, digest),
        lambda: worker.find_missing(other, [digest]),
        lambda: worker.send_chunk(other, digest, b"x"),
        lambda: worker.read_chunk(other, digest),
        lambda: worker.send_checkpoint(other, [SentFile(path="a", chunks=[digest])], "step 1"),
        lambda: worker.send_result(other, [SentFile(path="a", chunks=[digest])]),
        lambda: worker.send_panel(other, PANEL),
        lambda: worker.end(other, "failed", "It failed."),
    ):
        with pytest.raises(LeaseLostError, match="Stop working on it"):
            attempt()
    assert worker.find_missing(job, [digest]) == [digest]  # the chunk of the rejected request is not stored


@pytest.mark.parametrize(
    "path", ["../a", "/a", "a/../b", "a//b", "a\\b", "a\nb", ".", "a/", "C:a", "x" * 241, "", "a/./b"]
)
def test_paths_that_could_leave_the_folder_are_rejected(service, leased, path):
    _, job = leased
    body = {"files": [{"path": path, "chunks": ["0" * 64]}], "position": "step 1"}
    answer = service.request(
        "PUT", f"{WORKER}/jobs/{job.id}/checkpoint", json=body, headers={**KEY, "X-Lease": job.lease}
    )
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] in ("bad_path", "bad_json")


@pytest.mark.parametrize(
    ("method", "rest", "body", "expected"),
    [
        ("PUT", "result", {"files": [{"path": "a", "chunks": ["0" * 64]}] * 2}, (400, "bad_path")),
        (
            "PUT",
            "result",
            {"files": [{"path": path, "chunks": ["0" * 64]} for path in ("a", "a/b")]},
            (400, "bad_path"),
        ),
        ("PUT", "result", {"files": [{"path": "a", "chunks": ["0" * 64]}]}, (409, "missing_chunks")),
        (
            "PUT",
            "result",
            {"files": [{"path": "report.html", "chunks": ["0" * 64] * 17}]},
            (400, "file_too_large"),
        ),
        ("PUT", "result", {"files": []}, (400, "bad_json")),
        ("POST", "end", {"outcome": "done"}, (409, "no_result")),
        ("POST", "end", {"outcome": "won"}, (400, "bad_json")),
        ("POST", "heartbeat", {"is_training": True, "progress": {"a": {"b": 1}}}, (400, "bad_json")),
        ("POST", "heartbeat", {"is_training": True, "progress": {"a": "x" * 2001}}, (400, "bad_json")),
        (
            "POST",
            "heartbeat",
            {"is_training": True, "events": [{"kind": "state", "content": {}}]},
            (400, "bad_json"),
        ),
        ("POST", "chunks/missing", {"sha256": ["../../etc"]}, (400, "bad_json")),
    ],
)
def test_hostile_reports_are_rejected(service, leased, method, rest, body, expected):
    _, job = leased
    path = f"{WORKER}/jobs/{job.id}/{rest}"
    assert (
        problem(service.request(method, path, json=body, headers={**KEY, "X-Lease": job.lease})) == expected
    )
    refused = problem(service.request(method, path, json=body, headers={**KEY, "X-Lease": "x"}))
    assert refused in [(400, "bad_parameter"), expected]


def test_hostile_files_are_rejected(service, leased):
    _, job = leased
    path, headers = f"{WORKER}/jobs/{job.id}", {**KEY, "X-Lease": job.lease}
    sends = [
        (f"chunks/{'0' * 64}", b"another content", (400, "damaged_chunk")),
        ("chunks/..%2F..%2Fsecret", b"x", (404, "not_found")),
        ("chunks/xyz", b"x", (400, "bad_parameter")),
        (f"chunks/{'0' * 64}", bytes(4 * 1024**2 + 1), (413, "body_too_large")),
        ("panel", b"GIF89a", (400, "not_a_png")),
        ("panel", PANEL[:20], (400, "not_a_png")),
        ("panel", HUGE_PANEL, (400, "picture_too_large")),
    ]
    for rest, content, expected in sends:
        assert problem(service.put(f"{path}/{rest}", content=content, headers=headers)) == expected
    assert problem(service.get(f"{path}/chunks/{'0' * 64}", headers=headers)) == (404, "chunk_not_found")


def test_the_key_of_a_worker_reads_nothing_else(service):
    for path in (JOBS, "/v1/data-sets", "/v1/records", "/v1/audit", f"/v1/data-sets/{service.data_set}"):
        assert service.get(path, headers=KEY).status_code == 403
    assert service.post(f"{WORKER}/lease", json={"name": "x", "version": "1"}).status_code == 403
