import io
from collections.abc import AsyncIterator

import numpy as np
import pytest
from PIL import Image

JPEG_END = b"\xff\xd9"
PROBLEM_KEYS = {"type", "title", "status", "detail", "code", "request_id"}


def encode(mode: str, kind: str, size: tuple[int, int] = (64, 48)) -> bytes:
    """A picture of noise, so that its file is long enough to be cut."""
    shape = (size[1], size[0], len(mode)) if len(mode) > 1 else (size[1], size[0])
    pixels = np.random.default_rng(0).integers(0, 255, shape, np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels, mode=None).save(file, kind)
    return file.getvalue()


def sixteen_bit() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((16, 16), 4095, np.uint16)).save(file, "PNG")
    return file.getvalue()


def cmyk() -> bytes:
    file = io.BytesIO()
    Image.new("CMYK", (64, 48)).save(file, "JPEG")
    return file.getvalue()


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


PHOTOGRAPHS = {
    "empty": (b"", 422, "empty_image"),
    "text": (b"this is no image, whatever its name says", 422, "unsupported_type"),
    "truncated PNG": (half(encode("L", "PNG")), 422, "truncated_image"),
    "truncated JPEG": (half(encode("RGB", "JPEG")), 422, "truncated_image"),
    "truncated JPEG, closed again": (half(encode("RGB", "JPEG")) + JPEG_END, 422, "truncated_image"),
    "CMYK": (cmyk(), 422, "unsupported_channels"),
    "16 bit": (sixteen_bit(), 422, "unsupported_depth"),
    "too many pixels": (encode("L", "PNG", (200, 101)), 413, "too_many_pixels"),
    "too many bytes": (bytes(200_001), 413, "body_too_large"),
}


def check(answer, status: int, code: str, words: tuple[str, ...] = ()) -> None:
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), body
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert set(body) == PROBLEM_KEYS
    assert body["status"] == status
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert all(word in body["detail"] for word in words), body["detail"]


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_photograph_in_the_body(client, name):
    body, status, code = PHOTOGRAPHS[name]
    answer = client.post("/v1/predict", content=body, headers={"Content-Type": "image/png"})
    check(answer, status, code, ("xpected",))


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_photograph_in_a_form(client, name):
    body, status, code = PHOTOGRAPHS[name]
    answer = client.post("/v1/predict", files={"file": ("part.png", body, "image/png")})
    check(answer, status, code, ("xpected",) if code == "body_too_large" else ("part.png", "xpected"))


def test_the_next_good_request_is_answered(client, part):
    for body, _, _ in PHOTOGRAPHS.values():
        client.post("/v1/predict", content=body, headers={"Content-Type": "image/png"})
    answer = client.post("/v1/predict", content=part, headers={"Content-Type": "image/png"})
    assert answer.json()["decision"]["label"] == "scratch"


def test_body_without_a_length_is_refused_while_it_is_read(client):
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield bytes(10_000)

    answer = client.post("/v1/predict", content=chunks(), headers={"Content-Type": "image/png"})
    check(answer, 413, "body_too_large", ("200000",))
    assert sent == 21


@pytest.mark.parametrize("chunked", [True, False])
def test_every_too_large_body_gets_the_same_problem(client, chunked):
    async def chunks() -> AsyncIterator[bytes]:
        yield bytes(300_000)

    content = chunks() if chunked else bytes(300_000)
    answer = client.post("/v1/predict", content=content, headers={"Content-Type": "image/png"})
    check(answer, 413, "body_too_large", ("expected at most 200000",))


def test_body_of_exactly_the_limit_is_read(client):
    answer = client.post("/v1/predict", content=bytes(200_000), headers={"Content-Type": "image/png"})
    check(answer, 422, "unsupported_type")


@pytest.mark.parametrize(
    "declared", ["application/xml", "text/plain", "application/x-www-form-urlencoded", "images/png", ""]
)
def test_other_content_types(client, part, declared):
    headers = {"Content-Type": declared} if declared else {}
    answer = client.post("/v1/predict", content=part, headers=headers)
    check(answer, 415, "unsupported_content_type", (declared or "No Content-Type", "multipart/form-data"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("threshold=2", ("query threshold is '2'. Expected less than or equal to 1.",)),
        ("threshold=-0.1", ("query threshold is '-0.1'. Expected greater than or equal to 0.",)),
        ("threshold=nan", ("query threshold is 'nan'. Expected",)),
        ("threshold=high", ("query threshold is 'high'. Expected a valid number",)),
        ("mask=foo", ("query mask is 'foo'. Expected 'none', 'png', 'rle', 'polygon', 'scores', 'classes'",)),
        ("space=grid", ("query space is 'grid'. Expected 'input' or 'model'.",)),
        ("space=grid&threshold=2", ("space is 'grid'", "threshold is '2'")),
        ("threshold=0.1&threshold=0.9", ("twice", "Expected once")),
        ("treshold=0.3", ("unknown parameter 'treshold'", "did you mean 'threshold'")),
    ],
)
def test_parameters(client, part, query, words):
    answer = client.post(f"/v1/predict?{query}", content=part, headers={"Content-Type": "image/png"})
    check(answer, 400, "bad_parameter", words)


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/predict/batch"])
@pytest.mark.parametrize("declared", ["application/x-www-form-urlencoded", ""])
def test_empty_body_of_no_known_type(client, path, declared):
    """As curl sends it for a file that is not there."""
    headers = {"Content-Type": declared} if declared else {}
    answer = client.post(path, content=b"", headers=headers)
    check(answer, 422, "empty_image", ("The request body is empty (0 bytes)", "name of the file"))


def test_too_large_a_picture_names_the_flag(client):
    answer = client.post(
        "/v1/predict", content=encode("L", "PNG", (200, 101)), headers={"Content-Type": "image/png"}
    )
    words = ("has 200 × 101 = 20,200 pixels", "raise the limit max_pixels", "--max-pixels")
    check(answer, 413, "too_many_pixels", words)


def test_form_without_a_file(client):
    answer = client.post("/v1/predict", files={"image": ("part.png", b"x")})
    check(answer, 400, "missing_file", ("'image'", "'file'"))


def test_form_field_that_is_text(client):
    body = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\ntext\r\n--b--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    check(client.post("/v1/predict", content=body, headers=headers), 400, "missing_file", ("'file'",))


def test_form_with_two_files(client, part):
    files = [("file", ("a.png", part)), ("file", ("b.png", part))]
    check(client.post("/v1/predict", files=files), 400, "bad_form", ("one file",))


@pytest.mark.parametrize(
    ("declared", "body", "word"),
    [
        ("multipart/form-data", b"--b\r\n", "boundary"),
        ("multipart/form-data; boundary=b", b"no boundary in here", "Invalid"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nno name\r\n--b--\r\n", "Content-Disposition"),
        ("multipart/form-data; boundary=b", b"", "closing boundary"),
    ],
)
def test_broken_form(client, declared, body, word):
    answer = client.post("/v1/predict", content=body, headers={"Content-Type": declared})
    check(answer, 400, "bad_form", (word, "Expected one file"))


def test_form_that_ends_inside_its_file(client, part):
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = client.post("/v1/predict", content=head + part, headers=headers)
    check(answer, 400, "bad_form", ("closing boundary",))


def test_unknown_path(client):
    check(client.get("/v1/nowhere"), 404, "not_found", ("/v1/nowhere", "/openapi.json"))
    for path in ("/line", "/v1/records/1", "/v1/outbox"):
        check(client.get(path), 404, "not_found", (path, "--record required"))


@pytest.mark.parametrize(
    ("method", "path", "allowed"), [("GET", "/v1/predict", "POST"), ("POST", "/v1/models", "GET")]
)
def test_wrong_method(client, method, path, allowed):
    answer = client.request(method, path)
    check(answer, 405, "method_not_allowed", (method, path, allowed))
    assert answer.headers["Allow"] == allowed


def test_unknown_model(client):
    check(client.get("/v1/models/other"), 404, "model_not_found", ("'other'", "'unnamed'"))
