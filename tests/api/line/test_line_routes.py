"""The status of the line, and requests that are not inspected."""

import base64
import json
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest

from segdec.images import encode_png
from tests.api.conftest import PNG, ServiceClient, know_training, part_image

GOOD = encode_png(part_image(brightness=90))


def line(client, query="", **headers):
    answer = client.get(f"/v1/line{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def inspect(client, body, query="", **headers):
    return client.post(f"/v1/inspect{query}", content=body, headers={**PNG, **headers})


def uninspected(client, query=""):
    return [(one["station"], one["part_id"], one["code"]) for one in line(client, query)["uninspected"]]


def test_the_status_after_inspections(recorder, part):
    assert line(recorder)["last"] is None
    inspect(recorder, part, "?station=a&part_id=7")
    inspect(recorder, GOOD, "?station=b&part_id=8")
    status = line(recorder)
    assert status["stations"] == ["a", "b"]
    last = status["last"]
    assert (last["record_id"], last["verdict"], last["part_id"]) == (2, "good", "8")
    assert (status["shift"]["inspected"], status["shift"]["defective"]) == (2, {"scratch": 1})
    assert [defect["record_id"] for defect in status["defects"]] == [1]
    assert line(recorder, "?station=a")["last"]["verdict"] == "defect"
    assert status["chart"]["hours"][-1]["inspected"] + status["chart"]["hours"][-2]["inspected"] == 2


REJECTED = [
    ("?station=a&part_id=7", b"no picture", 422, ("a", "7", "unsupported_type")),
    ("?station=a&part_id=8&mask=paper", GOOD, 400, ("a", "8", "bad_parameter")),
    ("?station=a&station=b", GOOD, 400, ("a", None, "bad_parameter")),
    ("", b"x" * 2_000, 413, ("", None, "body_too_large")),
    (f"?station={'a' * 200}%00", GOOD, 400, ("a" * 128, None, "bad_parameter")),
    ("?" + "&".join(f"a{n}=" for n in range(99)), GOOD, 400, ("", None, "bad_parameter")),
]


def test_rejected_requests_are_uninspected(make_app, folder):
    app = make_app(record="required", record_folder=folder, max_body_bytes=1_000)
    with ServiceClient(app) as client:
        for count, (query, body, status, expected) in enumerate(REJECTED, 1):
            assert inspect(client, body, query).status_code == status
            found = line(client)
            assert uninspected(client)[0] == expected
            assert found["uninspected"][0]["status"] == status and found["uninspected"][0]["detail"]
            assert (found["shift"]["inspected"], found["shift"]["not_inspected"]) == (0, count)
            assert found["last"] is None and not found["uninspected"][0]["followed"]


def test_a_photograph_unlike_those_of_the_training_is_uninspected(recorder, predictor, grey_training):
    like, black = know_training(predictor, grey_training)
    assert inspect(recorder, like, "?station=a&part_id=7").json()["decision"]["label"] == "good"
    answer = inspect(recorder, black, "?station=a&part_id=8")
    assert (answer.status_code, answer.json()["code"]) == (422, "unlike_training")
    status = line(recorder)
    (photograph,) = status["uninspected"]
    assert (photograph["station"], photograph["part_id"], photograph["code"]) == ("a", "8", "unlike_training")
    assert photograph["detail"].startswith("The photograph is black or almost black (lamp off, lens cap).")
    assert (status["shift"]["good"], status["shift"]["not_inspected"]) == (1, 1)
    assert status["last"]["part_id"] == "7"


def test_a_photograph_unlike_those_of_the_training_may_be_a_warning(
    make_app, folder, predictor, grey_training
):
    _, black = know_training(predictor, grey_training)
    app = make_app(record="required", record_folder=folder, unlike_training="warn")
    with ServiceClient(app) as client:
        answer = inspect(client, black)
        assert answer.status_code == 200
        assert answer.json()["warnings"] == ["unlike_training: black or almost black (lamp off, lens cap)"]
        assert answer.json()["decision"]["label"] == "review"
        assert uninspected(client) == []


def test_a_photograph_of_another_surface_is_uninspected_or_a_warning(
    make_app, folder, predictor, surface_training
):
    like, _ = know_training(predictor, surface_training)
    reason = "of another part or surface than those of the training"
    with ServiceClient(make_app(record="required", record_folder=folder)) as client:
        predictor.surface = np.array([0.11, 0.2], np.float32)
        assert inspect(client, like).json()["decision"]["label"] == "good"
        predictor.surface = np.array([0.11, 0.3], np.float32)
        answer = inspect(client, like)
        assert (answer.status_code, answer.json()["code"]) == (422, "unlike_training")
        assert reason in answer.json()["detail"] and uninspected(client)[0][2] == "unlike_training"
        metrics = client.get("/metrics").text
        assert 'segdec_training_distance_count{measure="surface",model="unnamed",version="0"} 2.0' in metrics
    with ServiceClient(make_app(record="off", unlike_training="warn")) as client:
        assert inspect(client, like).json()["warnings"][0] == f"unlike_training: {reason}"


@pytest.mark.parametrize(("unlike", "found"), [("reject", "unlike_training"), ("warn", None)])
def test_photographs_unlike_those_of_the_training_are_counted_and_reported(
    make_app, folder, tmp_path, predictor, grey_training, unlike, found
):
    _, black = know_training(predictor, grey_training)
    events = tmp_path / "events.jsonl"
    app = make_app(record="required", record_folder=folder, outbox_jsonl=events, unlike_training=unlike)
    with ServiceClient(app) as client:
        inspect(client, black, "?station=a&part_id=8")
        client.post("/v1/predict", content=black, headers=PNG)
        client.post("/v1/predict/batch", files=[("file", black), ("file", black)])
        tensor = {"name": "pixels", "shape": [1, 32, 48, 1], "datatype": "UINT8", "data": [0] * 32 * 48}
        answer = client.post("/v2/models/unnamed/infer", json={"inputs": [tensor]})
        assert answer.status_code == (200 if found is None else 422), answer.text
        lines = client.get("/metrics").text.splitlines()
        while not events.exists() or not events.read_text():
            time.sleep(0.01)
    problems = 'segdec_problems_total{code="unlike_training",key="",status="422"} 5.0'
    result = "inspected" if found is None else "refused"
    assert (problems in lines) == (found is not None)
    assert f'segdec_photographs_total{{key="",result="{result}"}} 5.0' in lines
    measured = 'segdec_training_distance_count{measure="brightness",model="unnamed",version="0"} 5.0'
    assert measured in lines
    (event,) = map(json.loads, events.read_text().splitlines())
    assert (event["data"].get("code"), event["data"]["part_id"]) == (found, "8")
    assert event["type"] == ("segdec.inspected" if found is None else "segdec.not_inspected")


def test_an_uninspected_photograph_names_the_part_in_the_body(recorder, part):
    body = {"image": {"b64": base64.b64encode(part[:-20]).decode()}, "station": "a", "part_id": "7"}
    assert recorder.post("/v1/inspect", json=body).status_code == 422
    form = {"files": {"file": b"x"}, "data": {"station": "b"}}
    assert recorder.post("/v1/models/unnamed/inspect", **form).status_code == 422
    assert {(station, number) for station, number, _ in uninspected(recorder)} == {("a", "7"), ("b", None)}


def test_a_request_beyond_the_rate_limit_is_uninspected(make_app, folder, part):
    app = make_app(record="required", record_folder=folder, rate_limit=0.001, rate_burst=2)
    with ServiceClient(app) as client:
        assert [inspect(client, part, "?station=a").status_code for _ in range(3)] == [200, 200, 429]
        (row,) = wait_for_rows(folder, 1)
        assert (row["station"], row["code"]) == ("a", "rate_limit")


def wait_for_rows(folder, count):
    with closing(sqlite3.connect(folder / "record.db")) as database:
        database.row_factory = sqlite3.Row
        while len(rows := database.execute("SELECT * FROM uninspected").fetchall()) < count:
            time.sleep(0.01)
    return rows


def test_a_request_without_a_key_is_not_recorded_as_uninspected(make_app, folder, part, role_keys):
    secrets, files = role_keys
    with ServiceClient(make_app(record="required", record_folder=folder, **files)) as client:
        assert inspect(client, part, "?station=a").status_code == 401
        assert inspect(client, b"x", "?station=b", **{"X-API-Key": secrets["api"]}).status_code == 422
        (row,) = wait_for_rows(folder, 1)
        assert (row["station"], row["client"]) == ("b", "api")
