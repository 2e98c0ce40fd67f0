"""A photograph that is unlike those of the training, but not refused, is for review instead of good."""

import json
import time

import numpy as np
import pytest

from segdec.images import encode_png
from tests.api.conftest import PNG, ServiceClient, know_training

WARNING = "unlike_training: of another part or surface than those of the training"
LEVEL = 60
"""It is unlike the levels 100 to 119 of the training, and its score of 60 / 255 is good."""


@pytest.fixture
def unlike(predictor, grey_training):
    know_training(predictor, grey_training)
    return encode_png(np.full((32, 48, 1), LEVEL, np.uint8))


def verdict_of(answer):
    body = answer.json()
    assert answer.status_code == 200, body
    assert body["decision"]["unlike_training"] == bool(body["warnings"])
    return body["decision"]["label"], body["warnings"]


def test_record_review_and_line_have_it_for_review(make_app, folder, tmp_path, predictor, unlike):
    like, _ = know_training(predictor, predictor.config.training_photographs)
    events = tmp_path / "events.jsonl"
    app = make_app(
        record="required", record_folder=folder, record_good_share=0, record_near=1, outbox_jsonl=events
    )
    with ServiceClient(app) as client:
        url = "/v1/inspect?station=a&part_id=7"
        assert verdict_of(client.post(url, content=like, headers=PNG)) == ("good", [])
        assert verdict_of(client.post(url, content=unlike, headers=PNG)) == ("review", [WARNING])
        record = client.get("/v1/records/2").json()
        assert record["answer"]["decision"]["label"] == "review" and record["answer"]["warnings"] == [WARNING]
        assert max(record["distances"], key=record["distances"].get) == "brightness"
        (task,) = client.post("/v1/review/next", json={"session": "mine"}).json()["tasks"]
        assert (task["why"], task["record"]["record_id"]) == ("doubtful", 2)
        status = client.get("/v1/line").json()
        assert (status["shift"]["good"], status["shift"]["review"], status["uninspected"]) == (1, 1, [])
        assert status["last"]["verdict"] == "review"
        lines = client.get("/metrics").text.splitlines()
        while not events.exists() or events.read_text().count("\n") < 2:
            time.sleep(0.01)
    assert 'segdec_decisions_total{label="review",model="unnamed",version="0"} 1.0' in lines
    assert [json.loads(event)["data"]["verdict"] for event in events.read_text().splitlines()] == [
        "good",
        "review",
    ]


def test_predict_batch_and_tensors_have_it_for_review(client, unlike):
    assert verdict_of(client.post("/v1/predict", content=unlike, headers=PNG)) == ("review", [WARNING])
    (item,) = client.post("/v1/predict/batch", files=[("file", unlike)]).json()["items"]
    assert item["answer"]["decision"]["label"] == "review"
    tensor = {"name": "pixels", "shape": [1, 32, 48, 1], "datatype": "UINT8", "data": [LEVEL] * 32 * 48}
    answer = client.post("/v2/models/unnamed/infer", json={"inputs": [tensor]}).json()
    assert next(each["data"] for each in answer["outputs"] if each["name"] == "label") == ["review"]


@pytest.mark.parametrize(("threshold", "label"), [(0.3, "review"), (0.2, "scratch")])
def test_with_another_threshold_it_is_not_good_either(client, unlike, threshold, label):
    answer = client.post(f"/v1/predict?threshold={threshold}", content=unlike, headers=PNG)
    assert verdict_of(answer) == (label, [WARNING])


def test_another_surface_has_one_warning(client, predictor, surface_training):
    know_training(predictor, surface_training)
    predictor.surface = np.array([0.11, 0.211], np.float32)
    for level in (110, LEVEL):
        picture = encode_png(np.full((32, 48, 1), level, np.uint8))
        predictor.threshold = 0.9
        assert verdict_of(client.post("/v1/predict", content=picture, headers=PNG)) == ("review", [WARNING])
