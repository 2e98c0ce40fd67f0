"""Photographs in JSON bodies; `malformed_json` has the invalid ones."""

import base64


def test_base64_in_json_answers_like_the_raw_body(client, part):
    body = {"image": {"b64": base64.b64encode(part).decode(), "name": "part 17"}}
    answer = client.post("/v1/predict", json=body).json()
    assert answer["decision"]["label"] == "scratch"
    facts = {"width": 40, "height": 24, "bit_depth": 8, "format": "png", "integrity": "checked"}
    assert answer["image"] == facts


def test_error_names_the_image_as_its_sender_did(client):
    body = {"image": {"b64": base64.b64encode(b"text").decode(), "name": "part 17"}}
    answer = client.post("/v1/predict", json=body).json()
    assert answer["code"] == "unsupported_type"
    assert "part 17" in answer["detail"]
