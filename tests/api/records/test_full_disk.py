"""A full disk: nothing is answered without being recorded, and old pictures are deleted."""

import subprocess

import numpy as np
import pytest
from sqlalchemy import select

from api.records.database import open_database
from api.records.tables import inspections
from segdec.images import encode_png
from tests.api.conftest import ServiceClient

PNG = {"Content-Type": "image/png"}
DISK_BYTES = 8 * 2**20


@pytest.fixture
def disk(tmp_path):
    """A folder on a small file system."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no right to mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder):
    """Writes a file that takes all space that is left."""
    with (folder / "other").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def photograph(number, brightness=100):
    pixels = np.random.default_rng(number).integers(0, brightness, (100, 150, 1), np.uint8)
    return encode_png(pixels)


def test_a_full_disk_rejects_until_pictures_are_deleted(make_app, disk, monkeypatch):
    monkeypatch.setattr("api.records.storage.reserved_space.RESERVED_BYTES", 2**20)
    folder = disk / "record"
    answered = {}
    shares = {"record_free_share": 0.2, "record_good_share": 0.0, "record_sample_share": 0.0}
    with ServiceClient(make_app(record="required", record_folder=folder, **shares)) as client:

        def inspect(number):
            answer = client.post(f"/v1/inspect?part_id={number}", content=photograph(number), headers=PNG)
            if answer.status_code == 200:
                answered[number] = answer.json()["record_id"]
            else:
                assert (answer.status_code, answer.json()["code"]) == (503, "record_unavailable")
            return answer

        for number in range(60):
            assert inspect(number).status_code == 200
        assert (folder / "ballast").exists()
        fill(disk)
        rejection = inspect(1000)
        assert rejection.status_code == 503 and "its disk is full" in rejection.json()["detail"]
        while inspect(1001).status_code != 200:
            pass
        while (image := client.get("/v1/records/1/image")).status_code == 200:
            pass  # it is deleted in a thread
        assert image.json()["code"] == "picture_expired"
        assert client.get(f"/v1/records/{answered[1001]}/image").content == photograph(1001)
    engine = open_database(f"sqlite:///{folder / 'record.db'}")
    with engine.connect() as connection:
        rows = connection.execute(select(inspections.c.part_id, inspections.c.id)).all()
    engine.dispose()
    assert {int(part): number for part, number in rows} == answered


def test_a_full_disk_without_deletable_pictures_rejects(make_app, disk, monkeypatch):
    monkeypatch.setattr("api.records.storage.reserved_space.RESERVED_BYTES", 2**18)
    settings = {"record": "required", "record_folder": disk / "record", "record_free_share": 0.0}
    with ServiceClient(make_app(**settings)) as client:
        assert client.post("/v1/inspect", content=photograph(0), headers=PNG).json()["record_id"] == 1
        fill(disk)
        statuses = [
            client.post("/v1/inspect", content=photograph(number), headers=PNG).status_code
            for number in range(1, 20)
        ]
        assert set(statuses) == {503}
        assert client.post("/v1/predict", content=photograph(1), headers=PNG).status_code == 200
        (disk / "other").unlink()
        while (answer := client.post("/v1/inspect", content=photograph(99), headers=PNG)).status_code == 503:
            pass
        assert answer.json()["record_id"] == 2
