"""Photographs as people's programs send them: every kind of JSON, base64, form and encoding."""

import base64
import codecs
import gzip
import itertools
import json

import numpy as np
import pytest

from segdec.images import encode_png
from tests.api.conftest import PNG, problem

URL = "/v1/predict?mask=none"
BATCH = "/v1/predict/batch?mask=none"
INFER = "/v2/models/unnamed/infer"


@pytest.fixture(scope="module")
def encoded(part) -> str:
    """The photograph in base64 with characters that the URL-safe alphabet replaces."""
    text = base64.b64encode(part + b"\xff\xef\xbe\xfb").decode()  # a PNG may have more bytes after its end
    assert "+" in text
    assert "/" in text
    return text


def label_of(answer) -> str:
    assert answer.status_code == 200, answer.text
    return answer.json()["decision"]["label"]


# === JSON ===


@pytest.mark.parametrize(
    "kind",
    ["application/json; charset=utf-8", "text/json", "application/vnd.camera+json", "Application/JSON"],
)
@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", "utf-16-le"),
    ],
)
def test_json_of_every_type_and_unicode_encoding(unchanged, encoded, kind, mark, encoding):
    body = mark + json.dumps({"image": {"b64": encoded, "name": "Gehäuse"}}, ensure_ascii=False).encode(
        encoding
    )
    assert label_of(unchanged.post(URL, content=body, headers={"Content-Type": kind})) == "scratch"


@pytest.mark.parametrize("path", [BATCH, INFER])
def test_byte_order_mark_before_several_photographs(unchanged, encoded, path):
    tensor = {"name": "image", "shape": [1], "datatype": "BYTES", "data": [encoded]}
    sent = {"inputs": [tensor]} if path == INFER else {"images": [{"b64": encoded}]}
    body = codecs.BOM_UTF8 + json.dumps(sent).encode()
    answer = unchanged.post(path, content=body, headers={"Content-Type": "text/json"})
    assert answer.status_code == 200, answer.text


def test_json_that_is_not_unicode_is_named(unchanged):
    body = '{"image": {"b64": "", "name": "Gehäuse"}}'.encode("latin-1")
    answer = unchanged.post(URL, content=body, headers={"Content-Type": "application/json"})
    assert problem(answer) == (400, "bad_json")
    assert "not UTF-8 at line 1 column 35" in answer.json()["detail"]


@pytest.mark.parametrize("path", [URL, BATCH, INFER])
@pytest.mark.parametrize(
    "form", ["lines", "indented", "url-safe", "unpadded", "data URI", "upper-case data URI"]
)
def test_base64_of_every_kind(unchanged, encoded, path, form):
    text = {
        "lines": "\r\n".join(encoded[start : start + 76] for start in range(0, len(encoded), 76)) + "\r\n",
        "indented": f"\n{encoded}\n  ",
        "url-safe": encoded.translate(str.maketrans("+/", "-_")),
        "unpadded": encoded.rstrip("="),
        "data URI": f"data:image/png;base64,{encoded}",
        "upper-case data URI": f"DATA:;charset=utf-8;BASE64,{encoded}",
    }[form]
    tensor = {"name": "image", "shape": [1], "datatype": "BYTES", "data": [text]}
    bodies = {URL: {"image": {"b64": text}}, BATCH: {"images": [{"b64": text}]}, INFER: {"inputs": [tensor]}}
    answer = unchanged.post(path, json=bodies[path])
    assert answer.status_code == 200, answer.text
    assert "problem" not in answer.text or answer.json()["items"][0]["problem"] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AA AA", "spaces, which may be lost plus signs"),
        ("AA*AA", "Only base64 data is allowed"),
        ("data:image/png,%89PNG", "a data URI without ';base64,'"),
        ("data:,", "a data URI without ';base64,'"),
        ("größ", "ASCII"),
        ("A", "number of data characters (1)"),
    ],
)
def test_text_that_is_not_base64_is_refused(unchanged, text, words):
    answer = unchanged.post(URL, json={"image": {"b64": text}})
    assert problem(answer) == (400, "bad_base64")
    assert words in answer.json()["detail"]


# === Types and encodings ===


def test_body_without_a_type_is_read_as_bytes(unchanged, part):
    assert label_of(unchanged.post(URL, content=part)) == "scratch"


def test_compressed_body_is_refused_on_every_route(serve, make_app, key_files, tmp_path, part):
    app = make_app(record="required", record_folder=tmp_path / "record", admin_keys=key_files["admin_keys"])
    headers = {"X-API-Key": "admin", "If-Match": '"0"'}
    encodings = itertools.cycle(["gzip", "GZip, identity", "br"])
    with serve(app) as client:
        record_id = client.post("/v1/inspect", content=part, headers=PNG).json()["record_id"]
        for method, path, kind in (
            ("POST", "/v1/predict", "image/png"),
            ("POST", "/v1/predict", "multipart/form-data; boundary=b"),
            ("POST", "/v1/predict/batch", "application/json"),
            ("POST", "/v1/inspect", "application/json"),
            ("POST", INFER, "application/octet-stream"),
            ("POST", "/v1/review/next", "application/json"),
            ("PUT", f"/v1/records/{record_id}/review", "application/json"),
            ("POST", "/v1/admin/models/unnamed/candidate", "application/json"),
        ):
            headers |= {"Content-Type": kind, "Content-Encoding": (encoding := next(encodings))}
            answer = client.request(method, path, content=gzip.compress(b"{}"), headers=headers)
            assert problem(answer) == (415, "unsupported_content_encoding"), path
            assert answer.headers["Accept-Encoding"] == "identity"
            assert f"'{encoding}'" in answer.json()["detail"]


def test_identity_is_no_compression(unchanged, part):
    headers = {**PNG, "Content-Encoding": "Identity, identity"}
    assert label_of(unchanged.post(URL, content=part, headers=headers)) == "scratch"


# === Forms ===


def form(*parts: tuple[bytes, bytes]) -> dict:
    """A form of parts, each with its Content-Disposition after `form-data; ` and its content."""
    head = b"--b\r\nContent-Disposition: form-data; "
    body = b"".join(b"%b%b\r\n\r\n%b\r\n" % (head, *each) for each in parts) + b"--b--\r\n"
    return {"content": body, "headers": {"Content-Type": "multipart/form-data; boundary=b"}}


@pytest.mark.parametrize(
    "disposition", [b'name="file"', b"name=file", b"name=\"file\"; filename*=utf-8''%C3%A4"]
)
def test_file_without_a_name_is_read(unchanged, part, disposition):
    large = part + bytes(150_000)  # with bytes that are not text
    assert label_of(unchanged.post(URL, **form((disposition, large)))) == "scratch"
    items = unchanged.post(BATCH, **form((disposition, part), (b'name="file"; filename="b.png"', part)))
    assert [item["problem"] for item in items.json()["items"]] == [None, None]


@pytest.mark.parametrize(
    ("parts", "code", "words"),
    [
        ([(b'name="file"', b"part.png")], "missing_file", "'file' has the text 'part.png'; expected a file"),
        ([(b'name="file"', b"data:image/png;base64,AAAA")], "missing_file", "as JSON"),
        ([(b'name="image"; filename="a"', b"x")], "missing_file", "The form has 'image'; expected 'file'"),
        ([(b'name="image"', b"{}")], "missing_file", "The form has 'image'; expected 'file'"),
        (
            [(b'name="file"', b"\x89"), (b'name="x"', b"")],
            "missing_file",
            "expected 'file' and no other field",
        ),
        ([(b'name="file"', b"\x89"), (b'name="file"', b"\x89")], "bad_form", "/v1/predict/batch"),
    ],
)
def test_message_about_a_form_says_what_to_change(unchanged, parts, code, words):
    answer = unchanged.post(URL, **form(*parts))
    assert problem(answer) == (400, code)
    assert words in answer.json()["detail"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])
def test_photograph_as_curl_sends_it_by_default_gets_the_command(unchanged, part, kind):
    answer = unchanged.post(URL, content=part, headers={"Content-Type": kind})
    assert problem(answer) == (415, "unsupported_content_type")
    assert "curl --data-binary @part.png -H 'Content-Type: image/png'" in answer.json()["detail"]


NOISE = encode_png(np.random.default_rng(0).integers(0, 256, (100, 100), np.uint8))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (NOISE.replace(b"\n", b"").replace(b"\r", b""), "curl --data-binary, not -d"),
        (base64.b64encode(NOISE), "It is base64"),
        (b'{"image": {"b64": ""}}', "Content-Type: application/json"),
        (gzip.compress(NOISE), "It is compressed"),
    ],
)
def test_photograph_that_was_changed_on_its_way_is_explained(unchanged, body, words):
    answer = unchanged.post(URL, content=body, headers=PNG)
    assert answer.status_code == 422
    assert words in answer.json()["detail"]
