"""Messages of rejected requests: what arrived, what was expected."""

from collections.abc import AsyncIterator

import numpy as np
import pytest

from segdec.images import encode_png
from tests.api.conftest import PNG, PROBLEM


def check(answer, status: int, code: str, words: tuple[str, ...] = ()) -> None:
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), body
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert set(body) == PROBLEM
    assert body["status"] == status
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert all(word in body["detail"] for word in words), body["detail"]


def test_body_without_a_length_is_refused_while_it_is_read(client):
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield bytes(10_000)

    answer = client.post("/v1/predict", content=chunks(), headers=PNG)
    check(answer, 413, "body_too_large", ("200000",))
    assert sent == 21
    answer = client.post("/v1/predict", content=bytes(200_000), headers=PNG)
    check(answer, 422, "unsupported_type")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("threshold=high", ("query threshold is 'high'. Expected a valid number",)),
        ("mask=foo", ("query mask is 'foo'. Expected 'none', 'png', 'rle', 'polygon', 'scores', 'classes'",)),
        ("space=grid&threshold=2", ("space is 'grid'", "threshold is '2'")),
        ("threshold=0.1&threshold=0.9", ("twice", "Expected once")),
        ("treshold=0.3", ("unknown parameter 'treshold'", "did you mean 'threshold'")),
    ],
)
def test_parameters(client, part, query, words):
    answer = client.post(f"/v1/predict?{query}", content=part, headers=PNG)
    check(answer, 400, "bad_parameter", words)


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/predict/batch"])
@pytest.mark.parametrize("declared", ["application/x-www-form-urlencoded", ""])
def test_empty_body_of_no_known_type(client, path, declared):
    """As curl sends it for a file that does not exist."""
    headers = {"Content-Type": declared} if declared else {}
    answer = client.post(path, content=b"", headers=headers)
    check(answer, 422, "empty_image", ("The request body is empty (0 bytes)", "Check the file name"))


def test_too_large_a_picture_names_the_flag(client):
    answer = client.post("/v1/predict", content=encode_png(np.zeros((101, 200), np.uint8)), headers=PNG)
    words = ("has 200 × 101 = 20,200 pixels", "raise the limit max_pixels", "--max-pixels")
    check(answer, 413, "too_many_pixels", words)


def test_unknown_path_and_wrong_method(client):
    check(client.get("/v1/nowhere"), 404, "not_found", ("/v1/nowhere", "/openapi.json"))
    for path in ("/line", "/v1/records/1", "/v1/outbox", "/v1/data-sets/1"):
        check(client.get(path), 404, "not_found", (path, "--record required"))
    answer = client.get("/v1/predict")
    check(answer, 405, "method_not_allowed", ("GET", "/v1/predict", "POST"))
    assert answer.headers["Allow"] == "POST"
