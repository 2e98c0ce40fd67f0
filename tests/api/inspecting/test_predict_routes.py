import base64
import io
from unittest.mock import Mock

import cv2
import httpx
import numpy as np
import pytest
from PIL import Image

from segdec.images import encode_png
from segdec.mask_decoding import fill_polygons
from segdec.schemas import PolygonAnswer
from tests.api.conftest import PNG, part_image

TIMINGS = {"queue", "decode", "infer", "encode", "total"}


def post(client, body: bytes, query: str = "", **headers: str) -> httpx.Response:
    return client.post(f"/v1/predict{query}", content=body, headers={**PNG, **headers})


def test_answer_holds_every_field_of_the_schema(client, part):
    answer = post(client, part, **{"X-Request-ID": "line-3.part-17"}).json()
    timing = answer.pop("timing_ms")
    data = answer["mask"].pop("data")
    assert answer == {
        "id": "line-3.part-17",
        "model": {"name": "unnamed", "version": "0", "sha256": None},
        "image": {"width": 40, "height": 24, "bit_depth": 8, "format": "png", "integrity": "checked"},
        "decision": {
            "label": "scratch",
            "model_label": None,
            "score": pytest.approx(0.8),
            "threshold": 0.5,
            "review_threshold": None,
            "unlike_training": False,
            "probabilities": {"good": pytest.approx(0.2), "scratch": pytest.approx(0.8), "spot": 0.0},
        },
        "mask": {"encoding": "png", "width": 40, "height": 24, "space": "input", "threshold": 0.5}
        | {"labels": None},
        "regions": [
            {
                "bbox": [10, 8, 6, 4],
                "area_px": 24,
                "score_max": pytest.approx(0.8),
                "polygon": [[10, 8], [10, 12], [16, 12], [16, 8]],
                "label": None,
                "holes": [],
            }
        ],
        "batch_size": 1,
        "warnings": [],
        "inspected_area": None,
        "plan": None,
    }
    assert set(timing) == TIMINGS
    assert 0 <= max(timing[step] for step in TIMINGS - {"total"}) <= timing["total"]
    assert base64.b64decode(data, validate=True).startswith(b"\x89PNG")


def test_answer_outlines_what_is_inspected(client, predictor, part):
    predictor.area = np.zeros((24, 40), np.uint8)
    predictor.area[2:20, 4:30] = 255
    predictor.area[5:9, 6:10] = 0
    (outlined,) = post(client, part, "?mask=none").json()["inspected_area"]
    assert outlined["outer"] == [[4, 2], [4, 20], [30, 20], [30, 2]]
    filled = fill_polygons([PolygonAnswer.model_validate(outlined)], 24, 40)
    np.testing.assert_array_equal(filled, predictor.area)


def test_review_is_answered_between_its_thresholds_and_counted(client, predictor):
    predictor.review = 0.1
    doubtful = encode_png(part_image(brightness=102))  # 102 / 255 = 0.4
    decision = post(client, doubtful).json()["decision"]
    assert decision["label"] == "review"
    assert (decision["threshold"], decision["review_threshold"]) == (0.5, 0.1)
    given = post(client, doubtful, "?threshold=0.5").json()["decision"]
    assert (given["label"], given["review_threshold"]) == ("good", None)
    lines = client.get("/metrics").text.splitlines()
    where = 'model="unnamed",version="0"'
    assert f'segdec_decisions_total{{label="review",{where}}} 1.0' in lines
    bounds = [line for line in lines if line.startswith("segdec_log_odds_bucket") and " 0.0" not in line]
    assert bounds[0] == f'segdec_log_odds_bucket{{le="0.0",{where}}} 2.0'  # 8 · 0.4 − 4 = −0.8


@pytest.mark.parametrize("body", ["form", "json"])
def test_form_and_json_are_answered_like_the_raw_body(client, part, body):
    raw = post(client, part, **{"Content-Type": "IMAGE/JPEG; q=1"}).json()  # the content decides
    assert raw["image"]["format"] == "png"
    encoded = {"image": {"b64": base64.b64encode(part).decode()}}
    sent = {"files": {"file": ("a.txt", part, "text/plain")}} if body == "form" else {"json": encoded}
    answer = client.post("/v1/predict", **sent).json()
    for each in (raw, answer):
        each.pop("id"), each.pop("timing_ms")
    assert answer == raw


def test_error_contains_the_name_in_the_json(client):
    image = {"b64": base64.b64encode(b"text").decode(), "name": "part 17"}
    assert "part 17" in client.post("/v1/predict", json={"image": image}).json()["detail"]


def test_large_form_stays_in_memory(serve, make_app, monkeypatch):
    monkeypatch.setattr("tempfile.SpooledTemporaryFile.rollover", Mock(side_effect=OSError("read-only")))
    noise = np.random.default_rng(0).integers(0, 255, (1200, 1200, 1), np.uint8)
    body = cv2.imencode(".png", noise)[1].tobytes()
    assert len(body) > 1_200_000
    with serve(make_app()) as client:
        assert client.post("/v1/predict", files={"file": ("noise.png", body)}).status_code == 200


def test_colour_jpeg_is_rotated_with_a_warning(client, predictor):
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    file = io.BytesIO()
    Image.new("RGB", (32, 16), (200, 10, 10)).save(file, "JPEG", exif=exif)
    answer = post(client, file.getvalue()).json()
    facts = {"width": 16, "height": 32, "bit_depth": 8, "format": "jpeg", "integrity": "unchecked"}
    assert answer["image"] == facts
    assert len(answer["warnings"]) == 1
    assert predictor.shapes[-1] == (1, 32, 16, 3)


def test_webp_is_rejected_unless_accepted_by_the_settings(client, make_app, serve):
    file = io.BytesIO()
    Image.new("RGB", (32, 16), (90, 90, 90)).save(file, "WEBP", lossless=True)
    sent = {"content": file.getvalue(), "headers": {"Content-Type": "image/webp"}}
    refused = client.post("/v1/predict", **sent)
    assert (refused.status_code, refused.json()["code"]) == (422, "unsupported_type")
    assert "--accept-webp" in refused.json()["detail"]
    with serve(make_app(accept_webp=True)) as accepting:
        answer = accepting.post("/v1/predict", **sent)
    assert (answer.status_code, answer.json()["image"]["integrity"]) == (200, "unchecked")
