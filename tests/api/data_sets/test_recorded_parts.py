"""Photographs of the record in a data set, with their reviews as annotations."""

import base64
import shutil

import numpy as np
import pytest

from segdec.images import decode_mask_values, encode_png
from tests.api.conftest import PNG, part_image, problem
from tests.api.engineer_client import EngineerClient
from tests.api.record.databases import both_databases

SETS = "/v1/data-sets"
MASK = np.zeros((24, 40), np.uint8)
MASK[2:4, 2:9], MASK[8:12, 20:25] = 1, 2
PICTURES = {number: encode_png(part_image(brightness=200 + number)) for number in range(1, 7)}


@pytest.fixture
def line(folder, predictor, database_url):
    """A client of a service with six defective parts, all with classes; the set `a` has the class `spot`."""
    predictor.have_classes(spot_from=20)
    with EngineerClient(folder, predictor, record_database=database_url) as client:
        for number, picture in PICTURES.items():
            station = "left" if number < 4 else "right"
            client.post(f"/v1/inspect?station={station}&part_id=plate {number}", content=picture, headers=PNG)
        assert client.post(SETS, json={"name": "a", "classes": ["spot"]}).json()["id"] == 1
        yield client


def review(client, number, label, mask=None):
    body = {"label": label, "reviewer": "Bob"}
    if mask is not None:
        body["mask"] = {"png": base64.b64encode(encode_png(mask)).decode()}
    answer = client.put(f"/v1/records/{number}/review", json=body, headers={"If-Match": '"0"'})
    assert answer.status_code == 200, answer.text


def add(client, query=""):
    answer = client.post(f"{SETS}/1/parts?{query}")
    assert answer.status_code == 200, answer.text
    return {name: value for name, value in answer.json().items() if value}


def listed(client):
    """The photographs by the number of their inspection."""
    found = client.get(f"{SETS}/1/photographs").json()["photographs"]
    return {photograph["record_id"]: photograph for photograph in found}


@both_databases
def test_reviews_become_annotations(line):
    review(line, 1, "spot", MASK)
    review(line, 2, "good")
    review(line, 3, "unsure")
    review(line, 4, "scratch")
    assert add(line) == {"added": 6, "annotated": 3}
    found = listed(line)
    assert {number: one["label"] for number, one in found.items()} == {
        **{1: "spot", 2: "good", 3: None},
        **{4: "scratch", 5: None, 6: None},
    }
    assert (found[1]["name"], found[1]["part"], found[1]["width"]) == ("record-1", "plate 1", 40)
    assert line.get(SETS).json()["data_sets"][0]["classes"] == ["spot", "scratch"]
    path = f"{SETS}/1/photographs/{found[1]['id']}"
    stored = decode_mask_values(line.get(f"{path}/mask").content, "m", classes=[1, 2])
    np.testing.assert_array_equal(stored, np.array([0, 2, 1], np.uint8)[MASK])
    assert line.get(f"{path}/image").content == PICTURES[1]
    assert line.get(f"{path}/image?form=thumbnail").headers["content-type"] == "image/jpeg"
    (annotation,) = line.get(f"{path}/annotations").json()["annotations"]
    assert (annotation["author"], annotation["source"]) == ("ada/Bob", "reviewed")
    newest = line.get("/v1/audit").json()["changes"][0]
    assert (newest["what"], newest["after"]) == ("add inspected photographs", {"data_set": "a", "count": 6})


def test_parts_leave_half_of_the_free_share(folder, monkeypatch):
    with EngineerClient(folder, record_free_share=0.1) as client:
        for number in (1, 2):
            client.post("/v1/inspect", content=PICTURES[number], headers=PNG)
        client.post(SETS, json={"name": "a"})

        def add_all(free):
            monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1_800_000, 0, free))
            return client.post(f"{SETS}/1/parts")

        needed = len(PICTURES[1]) + len(PICTURES[2])
        answer = add_all(90_000 + needed - 1)
        assert problem(answer) == (507, "no_space")
        assert "The photographs cannot be stored" in answer.json()["detail"]
        assert listed(client) == {}
        assert add_all(90_000 + needed).json()["added"] == 2
        assert add_all(0).json()["present"] == 2


def test_an_annotation_of_the_data_set_is_not_replaced(line):
    assert add(line, "station=left") == {"added": 3}
    number = listed(line)[1]["id"]
    annotation = f"{SETS}/1/photographs/{number}/annotation"
    line.put(annotation, json={"label": "good", "based_on": None})
    line.delete(f"{SETS}/1/photographs/{listed(line)[2]['id']}")
    review(line, 1, "spot", MASK)
    assert add(line) == {"added": 3, "restored": 1, "present": 2}
    assert listed(line)[1]["label"] == "good"
    line.put(annotation, json={"label": None, "based_on": listed(line)[1]["annotation_id"]})
    assert add(line) == {"present": 6}


@both_databases
def test_searches_and_chosen_inspections(line):
    assert add(line, "station=right&part_id=plate 5") == {"added": 1}
    assert add(line, "record_id=1&record_id=5") == {"added": 1, "present": 1}
    assert set(listed(line)) == {1, 5}
    assert problem(line.post(f"{SETS}/1/parts?record_id=99")) == (404, "record_not_found")
    assert problem(line.post(f"{SETS}/1/parts?record_id=0")) == (400, "bad_parameter")
    assert problem(line.post(f"{SETS}/2/parts")) == (404, "data_set_not_found")


def test_many_photographs_are_added_in_several_requests(line, monkeypatch):
    monkeypatch.setattr("api.data_sets.recorded_parts.MAX_PARTS", 4)
    assert add(line) == {"added": 4, "next_before": 3}
    assert add(line, "before=3") == {"added": 2}
    monkeypatch.setattr("api.data_sets.recorded_parts.MAX_BYTES", len(PICTURES[6]))
    assert add(line) == {"present": 1, "next_before": 6}
    assert add(line, "before=6&station=right") == {"present": 1, "next_before": 5}


def test_deleted_photographs_are_counted(line):
    assert line.delete("/v1/admin/records/2/picture").status_code == 200
    assert add(line) == {"added": 5, "gone": 1}


def test_photographs_of_a_data_set_outlive_those_of_the_record(line):
    add(line, "record_id=2")
    line.delete("/v1/admin/records/2/picture")
    photograph = f"{SETS}/1/photographs/{listed(line)[2]['id']}"
    assert line.get("/v1/records/2/image").status_code == 404
    assert line.get(f"{photograph}/image").content == PICTURES[2]
