"""A full disk: nothing is answered without being recorded, and old pictures are deleted."""

import time

import numpy as np
from sqlalchemy import select

from api.database.database import open_database
from api.record.tables import inspections
from segdec.images import encode_png
from tests.api.conftest import PNG, ServiceClient
from tests.api.record.small_disk import fill

RESERVED_BYTES = 2**18


def photograph(number):
    return encode_png(np.random.default_rng(number).integers(0, 100, (300, 400, 1), np.uint8))


def test_a_full_disk_rejects_until_pictures_are_deleted(make_app, disk, monkeypatch):
    monkeypatch.setattr("api.record.record.REOPEN_S", 0.02)
    monkeypatch.setattr("api.record.storage.retention.DELETE_BATCH", 5)
    folder = disk / "record"
    answered = {}
    settings = {"record_free_share": 0.6, "record_good_share": 0.0, "record_sample_share": 0.0}
    settings["record_reserved_mb"] = RESERVED_BYTES / 1e6
    with ServiceClient(make_app(record="required", record_folder=folder, **settings)) as client:

        def inspect(number):
            answer = client.post(f"/v1/inspect?part_id={number}", content=photograph(number), headers=PNG)
            if answer.status_code == 200:
                answered[number] = answer.json()["record_id"]
            else:
                assert (answer.status_code, answer.json()["code"]) == (503, "record_unavailable")
            return answer

        for number in range(40):
            assert inspect(number).status_code == 200
        assert (folder / "ballast").exists()
        fill(disk)
        rejection = inspect(1000)
        assert rejection.status_code == 503 and "its disk is full" in rejection.json()["detail"]
        while inspect(1001).status_code != 200:
            time.sleep(0.02)
        while (image := client.get("/v1/records/1/image")).status_code == 200:
            time.sleep(0.02)  # it is deleted in a thread
        assert "was deleted by the retention rules at 2" in image.json()["detail"]
        while not (problems := client.get("/readyz").json().get("problems")):
            time.sleep(0.02)
        assert "Less than 60% of the disk is free" in problems[0]  # deleting all would not suffice for that
        assert client.get(f"/v1/records/{answered[39]}/image").content == photograph(39)
        assert client.get(f"/v1/records/{answered[1001]}/image").content == photograph(1001)
    engine = open_database(f"sqlite:///{folder / 'record.db'}")
    with engine.connect() as connection:
        rows = connection.execute(select(inspections.c.part_id, inspections.c.id)).all()
    engine.dispose()
    assert {int(part): number for part, number in rows} == answered
