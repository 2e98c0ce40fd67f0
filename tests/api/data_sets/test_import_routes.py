"""Archives that are sent to the service: accepted, limited, read by a program of its own."""

import io
import shutil
import zipfile

import pytest

from api.jobs import runner
from tests.api.conftest import PNG, problem
from tests.api.data_sets.conftest import SETS
from tests.api.data_sets.filled_data_set import photograph_file
from tests.api.data_sets.test_imports import PARTS
from tests.api.engineer_client import EngineerClient

ZIP = {"Content-Type": "application/zip"}


@pytest.fixture(scope="module")
def record_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("record")


@pytest.fixture(scope="module")
def engineer(record_folder):
    """A client that all tests of this module share."""
    with EngineerClient(record_folder, import_gb=0.001) as client:
        yield client


def archive(entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for name, content in entries.items():
            written.writestr(name, content)
    return file.getvalue()


def test_archive_is_read_in_the_background(engineer, path, wait_for, record_folder):
    answer = engineer.post(f"{path}/archives?name=parts.zip", content=archive(PARTS), headers=ZIP)
    assert answer.status_code == 202, answer.text
    sent = answer.json()
    assert (sent["name"], sent["state"], sent["finished_at"]) == ("parts.zip", "running", None)
    shown = wait_for(f"{path}/imports/{sent['id']}")
    assert shown["state"] == "done", shown
    assert (shown["result"]["found"], shown["result"]["labelled"]) == (4, 4)
    labels = engineer.get(path).json()["counts"]["labels"]
    assert labels == {"dent": 2, "good": 1, "scratch": 1}
    assert engineer.get(f"{path}/imports").json()["imports"] == [shown]
    assert list((record_folder / "jobs").iterdir()) == []


@pytest.mark.usefixtures("program_in_this_process")
def test_reasons_for_a_failure_are_shown(engineer, path, wait_for):
    for content, query, words in (
        (archive({"a.png": PARTS["parts/good/a.png"]}), "", "does not show which are good"),
        (archive({"a.txt": b""}), "?labels=none", "has no photographs"),
    ):
        answer = engineer.post(f"{path}/archives{query}", content=content, headers=ZIP)
        shown = wait_for(f"{path}/imports/{answer.json()['id']}")
        assert shown["state"] == "failed"
        assert words in shown["error"], shown


def test_an_archive_leaves_the_free_share_of_the_record(tmp_path, monkeypatch):
    with EngineerClient(tmp_path / "record", record_free_share=0.1) as client:
        path = f"{SETS}/{client.post(SETS, json={'name': 'a'}).json()['id']}/archives"
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9000, 0, 452))
        answer = client.post(path, content=b"x", headers=ZIP)  # 3 bytes beside a twentieth of the disk
        assert problem(answer) == (507, "no_space")
        assert "5% of it, stay free for inspections (half of record_free_share)" in answer.json()["detail"]
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9000, 0, 453))
        assert client.post(path, content=b"x", headers=ZIP).status_code == 202


def test_a_single_photograph_leaves_the_same_share(tmp_path, monkeypatch):
    with EngineerClient(tmp_path / "record", record_free_share=0.1) as client:
        path = f"{SETS}/{client.post(SETS, json={'name': 'a'}).json()['id']}/photographs"
        data = photograph_file(0).data

        def add(free):
            monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1_800_000, 0, free))
            return client.post(path, content=data, headers=PNG)

        answer = add(90_000 + len(data) - 1)
        assert problem(answer) == (507, "no_space")
        assert "5% of it, stay free for inspections" in answer.json()["detail"]
        assert add(90_000 + len(data)).status_code == 201
        assert add(0).json()["outcome"] == "present"


def test_bodies_that_cannot_be_archives_are_refused(engineer, path, record_folder, monkeypatch):
    def post(content, headers=ZIP, path=path):
        return engineer.post(f"{path}/archives", content=content, headers=headers)

    async def unknown_length(parts=2):
        for _ in range(parts):
            yield bytes(600_000)

    assert problem(post(b"")) == (400, "empty_archive")
    assert problem(post(bytes(1_100_000))) == (413, "body_too_large")
    assert problem(post(unknown_length())) == (413, "body_too_large")
    assert problem(post(b"x", {"Content-Type": "image/png"})) == (415, "unsupported_content_type")
    encoded = {**ZIP, "Content-Encoding": "gzip"}
    assert problem(post(b"x", encoded)) == (415, "unsupported_content_encoding")
    assert problem(engineer.post(f"{SETS}/99/archives", content=b"x", headers=ZIP)) == (
        404,
        "data_set_not_found",
    )
    assert problem(engineer.get(f"{path}/imports/99")) == (404, "import_not_found")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    assert problem(post(b"x")) == (507, "no_space")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9000, 0, 1500))
    assert problem(post(unknown_length(1))) == (507, "no_space")
    monkeypatch.setattr(runner, "MAX_WAITING", 0)
    assert problem(post(b"x")) == (503, "jobs_full")
    assert list((record_folder / "jobs").iterdir()) == []
    assert engineer.get(f"{path}/imports").json() == {"imports": []}
