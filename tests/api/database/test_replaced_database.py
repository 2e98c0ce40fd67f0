"""A database whose files are removed or replaced while the service runs, or between two runs."""

import shutil
import sqlite3
import time
from contextlib import closing

import pytest

from api.database.database_files import DatabaseFiles
from segdec.errors import ConfigError
from segdec.images import encode_png
from tests.api.conftest import CREATE_FILE, PNG, ServiceClient, part_image


@pytest.fixture(autouse=True)
def tables_are_in_the_log(monkeypatch):
    """A new database is made as by the service, without a checkpoint."""
    monkeypatch.setattr(DatabaseFiles, "create", CREATE_FILE)


@pytest.fixture
def start(make_app, folder, monkeypatch):
    monkeypatch.setattr("api.record.record.REOPEN_S", 0.0)
    return lambda: ServiceClient(make_app(record="required", record_folder=folder))


def inspect(client, number):
    """Returns the id of a new inspection, or the reason why it is not recorded."""
    answer = client.post("/v1/inspect", content=encode_png(part_image(brightness=number)), headers=PNG)
    if answer.status_code == 200:
        return answer.json()["record_id"]
    assert (answer.status_code, answer.json()["code"]) == (503, "record_unavailable")
    return answer.json()["detail"]


def inspect_again(client, number):
    """Sends an inspection until it is recorded: other threads may still use the former files."""
    for _ in range(100):
        if isinstance(answer := inspect(client, number), int):
            return answer
        time.sleep(0.1)
    return answer


def stored_ids(folder):
    with closing(sqlite3.connect(folder / "record.db")) as database:
        return [number for (number,) in database.execute("SELECT id FROM inspections ORDER BY id")]


def remove(folder):
    (folder / "record.db").rename(folder / "kept.db")


def remove_folder(folder):
    folder.rename(folder.with_name("away"))


def remove_all(folder):
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)


def put_empty(folder):
    remove(folder)
    sqlite3.connect(folder / "record.db").close()


def put_other(folder):
    with closing(sqlite3.connect(folder / "record.db")) as database:
        database.execute("VACUUM INTO ?", (str(folder / "other.db"),))
    with closing(sqlite3.connect(folder / "other.db")) as other, other:
        other.execute("UPDATE store SET id = 'another'")
    (folder / "other.db").replace(folder / "record.db")


def truncate(folder):
    with closing(sqlite3.connect(folder / "record.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (folder / "record.db").write_bytes(b"")


def truncate_log(folder):
    (folder / "record.db-wal").write_bytes(b"")


def halve_log(folder):
    with (folder / "record.db-wal").open("r+b") as file:
        file.truncate(50_000)


@pytest.mark.parametrize(
    "damage", [remove, remove_folder, remove_all, put_empty, put_other, truncate, truncate_log, halve_log]
)
def test_nothing_is_acknowledged_after_the_database_was_removed_or_replaced(start, folder, damage):
    with start() as client:
        assert [inspect(client, number) for number in (1, 2)] == [1, 2]
        client.get("/v1/records")
        damage(folder)
        assert all("cannot be used now: its" in inspect(client, number) for number in (3, 4, 5))
        assert client.get("/v1/records").status_code == 503


def remove_log(folder):
    (folder / "record.db-wal").unlink()


def zero_end_of_log(folder):
    with (folder / "record.db-wal").open("r+b") as file:
        file.seek(-5000, 2)
        file.write(bytes(5000))


@pytest.fixture
def crashed(start, folder, tmp_path):
    """A record of three inspections whose service was killed; the database has only the first one."""
    with start() as client:
        assert inspect(client, 1) == 1
        with closing(sqlite3.connect(folder / "record.db")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert [inspect(client, number) for number in (2, 3)] == [2, 3]
        shutil.copytree(folder, tmp_path / "crashed")
    shutil.rmtree(folder)
    (tmp_path / "crashed").rename(folder)
    return folder


@pytest.mark.parametrize("damage", [remove_log, truncate_log, halve_log, zero_end_of_log])
def test_lost_commits_are_noticed_by_the_next_start(start, crashed, damage, caplog):
    log = (crashed / "record.db-wal").read_bytes()
    damage(crashed)
    for _ in range(2):
        with start() as client:
            assert "its database was removed or replaced" in inspect(client, 4)
            assert client.get("/readyz").json()["codes"] == ["database_replaced"]
    assert "restore a backup" in caplog.text and "record.db-shm" in caplog.text
    (crashed / "record.db-wal").write_bytes(log)
    with start() as client:
        assert inspect(client, 5) == 4
        assert client.get("/v1/records/3/image").status_code == 200


def test_a_restored_log_is_used_without_a_restart(start, crashed):
    (crashed / "record.db-wal").rename(crashed / "log")
    with start() as client:
        assert "its database was removed or replaced" in inspect(client, 4)
        (crashed / "log").rename(crashed / "record.db-wal")
        assert inspect(client, 5) == 4


def test_a_record_continues_without_lost_commits_after_their_index_was_deleted(start, crashed):
    remove_log(crashed)
    (crashed / "record.db-shm").unlink()
    with start() as client:
        assert inspect(client, 4) == 2


@pytest.mark.usefixtures("crashed")
def test_a_killed_service_starts_again(start):
    with start() as client:
        assert inspect(client, 4) == 4


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_what_was_acknowledged_survives_the_deletion_of_the_log(start, folder, suffix):
    with start() as client:
        assert [inspect(client, number) for number in (1, 2)] == [1, 2]
        (folder / f"record.db{suffix}").unlink()
        answers = [inspect(client, number) for number in (3, 4, 5)]
        ids = [answer for answer in answers if isinstance(answer, int)]
        assert ids and ids == list(range(3, 3 + len(ids)))
    assert stored_ids(folder) == [1, 2, *ids]


def test_a_checkpoint_of_another_program_loses_nothing(start, folder, caplog):
    with start() as client:
        assert inspect(client, 1) == 1
        with closing(sqlite3.connect(folder / "record.db")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert (folder / "record.db-wal").stat().st_size == 0
        assert [inspect(client, number) for number in (2, 3)] == [2, 3]
    assert stored_ids(folder) == [1, 2, 3]
    assert not [record for record in caplog.records if "record.db" in record.getMessage()]


@pytest.mark.parametrize("is_link", [False, True])
def test_a_restored_folder_is_used_without_a_restart(start, folder, tmp_path, is_link):
    actual = folder
    if is_link:
        actual = tmp_path / "actual"
        actual.mkdir()
        folder.symlink_to(actual)
    with start() as client:
        assert inspect(client, 1) == 1
        actual.rename(tmp_path / "away")
        assert "cannot be used now: its" in inspect(client, 2)
        assert not actual.exists()
        (tmp_path / "away").rename(actual)
        assert inspect_again(client, 3) == 2
        remove_all(actual)
        assert "cannot be used now: its" in inspect(client, 4)
        (tmp_path / "copy").rename(actual)
        assert inspect_again(client, 5) == 3
    assert stored_ids(actual) == [1, 2, 3]


@pytest.mark.parametrize("damage", [remove, put_empty])
def test_an_empty_database_beside_pictures_is_refused_and_the_pictures_are_kept(start, folder, damage):
    with start() as client:
        assert inspect(client, 1) == 1
    damage(folder)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"Restore the database.*or move the pictures away"), start():
            pass
    (folder / "kept.db").rename(folder / "record.db")
    with start() as client:
        assert inspect(client, 2) == 2
        assert client.get("/v1/records/1/image").status_code == 200


@pytest.mark.parametrize("runs", [False, True])
def test_a_corrupted_database_is_named_in_the_log_and_in_readyz(start, folder, caplog, runs):
    def corrupt():
        with closing(sqlite3.connect(folder / "record.db")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with (folder / "record.db").open("r+b") as file:
            file.write(bytes(100) if not runs else b"")
            file.seek(4096)
            file.write(b"\xff" * (folder / "record.db").stat().st_size)

    with start() as client:
        assert inspect(client, 1) == 1
        if runs:
            corrupt()
            client.app.state.service.recording.record._engine.dispose()  # with its cache
            assert "its database is corrupted" in inspect(client, 2)
            check_reports_corruption(client, caplog)
    if not runs:
        corrupt()
        with start() as client:
            assert "its database is corrupted" in inspect(client, 2)
            check_reports_corruption(client, caplog)


def check_reports_corruption(client, caplog):
    health = client.get("/readyz").json()
    assert health["problems"] == ["The record cannot be used: its database is corrupted."]
    assert health["codes"] == ["database_corrupted"]
    assert sum("the database is corrupted (" in record.getMessage() for record in caplog.records) == 1
