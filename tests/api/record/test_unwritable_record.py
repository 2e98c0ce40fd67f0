"""A record that cannot be written now: what it contains can be read, and it recovers without a restart."""

import asyncio
import errno
import os
import sqlite3
import subprocess
from contextlib import ExitStack, closing, contextmanager
from unittest.mock import Mock

import pytest

from api.database import database
from api.record.storage.pictures import FolderPictures
from tests.api.conftest import PNG, ServiceClient, problem
from tests.api.data_sets.filled_data_set import CLASSES
from tests.api.engineer_client import EngineerClient
from tests.api.record.small_disk import fill

PATHS = (
    "/v1/records",
    "/v1/records/1",
    "/v1/records/1/image",
    "/v1/records/export?format=csv",
    "/v1/data-sets",
    "/v1/data-sets/1/photographs/1/image",
    "/v1/trends",
    "/v1/line",
    "/v1/reports/day",
    "/v1/audit",
    "/v1/training/jobs",
    "/v1/users",
    "/v1/session",
)


def inspect(client, part):
    return client.post("/v1/inspect", content=part, headers=PNG)


def health(client):
    return client.get("/readyz").json()


def wait_until_ready(client):
    """Waits until the service has found out that the failure is over, without an inspection."""
    client.app.state.service.recording.record._retention.run_now()  # as every 30 s
    assert any(health(client) == {"status": "ready"} for _ in range(10_000))


def fill_record(client, part):
    assert inspect(client, part).status_code == 200
    assert client.post("/v1/data-sets", json={"name": "parts", "classes": CLASSES}).status_code == 201
    assert client.post("/v1/data-sets/1/photographs", content=part, headers=PNG).status_code == 201


@contextmanager
def locked(folder, _monkeypatch):
    with closing(sqlite3.connect(folder / "record.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def failing(code):
    """Every picture fails with this error."""

    @contextmanager
    def fail(_folder, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(FolderPictures, "put", Mock(side_effect=OSError(code, os.strerror(code))))
            yield

    return fail


cases = pytest.mark.parametrize(
    ("begin", "code"),
    [
        (locked, "database_locked"),
        (failing(errno.ENOSPC), "disk_full"),
        (failing(errno.EROFS), "read_only"),
        (failing(errno.EIO), "pictures_not_writable"),
    ],
)


@cases
def test_reading_goes_on_while_nothing_can_be_written(tmp_path, monkeypatch, part, begin, code):
    monkeypatch.setattr(database, "BUSY_S", 0.5)
    with EngineerClient(tmp_path / "record") as client:
        fill_record(client, part)
        with begin(tmp_path / "record", monkeypatch):
            assert inspect(client, part + b"\0").status_code == 503
            assert {path: client.get(path).status_code for path in PATHS} == dict.fromkeys(PATHS, 200)
            assert client.post("/v1/predict", content=part, headers=PNG).status_code == 200
            degraded = health(client)
            assert (degraded["status"], degraded["codes"]) == ("degraded", [code])
            assert degraded["problems"][0].startswith("The record cannot be used: ")
        wait_until_ready(client)
        assert inspect(client, part + b"\0").status_code == 200


@cases
def test_a_start_that_cannot_write_reads_and_recovers(tmp_path, monkeypatch, part, begin, code):
    monkeypatch.setattr(database, "BUSY_S", 0.5)
    with EngineerClient(tmp_path / "record") as client:
        fill_record(client, part)
    pictures, orphan = FolderPictures(tmp_path / "record/pictures"), bytes(32)
    pictures.put(orphan, b"of a crash")
    failure = ExitStack()
    failure.enter_context(begin(tmp_path / "record", monkeypatch))
    with failure, EngineerClient(tmp_path / "record") as client:
        assert (health(client)["status"], health(client)["codes"]) == ("degraded", [code])
        assert {path: client.get(path).status_code for path in PATHS} == dict.fromkeys(PATHS, 200)
        assert inspect(client, part + b"\0").status_code == 503
        failure.close()
        wait_until_ready(client)
        assert not pictures.contains(orphan)
        assert inspect(client, part + b"\0").status_code == 200


def test_a_log_in_while_nothing_can_be_written_is_to_be_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_S", 0.1)
    folder = tmp_path / "record"
    with EngineerClient(folder) as client, locked(folder, monkeypatch):
        answer = client.post("/v1/session", json={"name": "anna", "password": "a password"})
    assert problem(answer) == (503, "record_unavailable")
    assert int(answer.headers["Retry-After"]) > 0


def test_waiting_changes_do_not_delay_reading(tmp_path, monkeypatch, part):
    monkeypatch.setattr(database, "BUSY_S", 60.0)
    with EngineerClient(tmp_path / "record") as client:
        fill_record(client, part)
        record = client.app.state.service.recording.record
        with locked(tmp_path / "record", monkeypatch):

            async def change_and_read():
                changes = [record.write(lambda _: None) for _ in range(10)]
                tasks = [asyncio.ensure_future(change) for change in changes]
                await asyncio.sleep(0)
                return await record.read(lambda _: "read"), tasks

            read, tasks = client.run(change_and_read)
            assert read == "read" and not any(task.done() for task in tasks)


@pytest.fixture
def start(make_app, disk, monkeypatch):
    """Starts the service with a record on a small disk."""
    monkeypatch.setattr("api.record.record.REOPEN_S", 0.0)
    settings = {"record": "required", "record_folder": disk / "record", "record_free_share": 0.0}
    return lambda reserved_mb=0: ServiceClient(make_app(**settings, record_reserved_mb=reserved_mb))


def test_a_full_disk_is_read_and_then_freed(start, disk, part):
    with start() as client:
        assert inspect(client, part).status_code == 200
        fill(disk)
        assert inspect(client, part + b"\0").status_code == 503
        assert client.get("/v1/records/1").status_code == 200
        assert client.get("/v1/records/1/image").content == part
        assert health(client)["codes"] == ["disk_full"]
        (disk / "other").unlink()
        wait_until_ready(client)
        assert inspect(client, part + b"\0").status_code == 200


def test_a_start_with_a_full_disk_releases_the_reserved_space(start, disk, part, caplog):
    with start(0.3) as client:
        assert inspect(client, part).status_code == 200
    (disk / "record" / "ballast").write_bytes(bytes(2**18))
    fill(disk)
    with start(0.3) as client:
        assert "The record cannot be opened" in caplog.text
        assert client.get("/v1/records/1").status_code == 200


def test_a_start_in_a_read_only_folder(start, disk, part):
    with start() as client:
        assert inspect(client, part).status_code == 200
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with start() as client:
        assert health(client)["codes"] == ["read_only"]
        assert client.post("/v1/predict", content=part, headers=PNG).status_code == 200
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert client.get("/v1/records/1").status_code == 200
        assert health(client) == {"status": "ready"}
