import base64

import pytest

JSON = {"Content-Type": "application/json"}


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


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (b"", "bad_json", "body"),
        (b"{", "bad_json", "Expected JSON"),
        (b"[" * 250, "bad_json", "recursion"),
        (b"[" * 100_000, "bad_json", "100000 values"),
        (b'{"image": {"b64": "", "%s": 1}}' % (b"a" * 100_000), "bad_json", "Extra inputs"),
        (b'{"image": NaN}', "bad_json", "image"),
        (b'{"image": {"url": "http://elsewhere/a.png"}}', "bad_json", "image.b64"),
        (b'{"image": {"b64": 1}}', "bad_json", "image.b64"),
        (b'{"image": {"b64": "", "threshold": 1}}', "bad_json", "image.threshold"),
        (b'{"picture": {"b64": ""}}', "bad_json", "picture"),
        (b'{"image": {"b64": "\xff"}}', "bad_json", "body"),
        (b'{"image": {"b64": "iVBO?"}}', "bad_base64", "base64"),
        (b'{"image": {"b64": "iVBOR"}}', "bad_base64", "base64"),
        ('{"image": {"b64": "größer"}}'.encode(), "bad_base64", "base64"),
        (b'{"image": {"b64": "data:image/png;base64,iVBORw0K"}}', "bad_base64", "base64"),
    ],
)
def test_broken_json(client, body, code, words):
    answer = client.post("/v1/predict", content=body, headers=JSON)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (400, code), problem
    assert words in problem["detail"]
    assert len(problem["detail"]) < 500


def test_empty_base64_is_an_empty_image(client):
    answer = client.post("/v1/predict", json={"image": {"b64": ""}})
    assert (answer.status_code, answer.json()["code"]) == (422, "empty_image")
