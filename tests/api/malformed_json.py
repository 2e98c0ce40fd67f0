"""JSON that is broken, too much or about something else; see `malformed_requests`."""

import base64
import json
from collections.abc import Iterator

from tests.api.malformed_requests import BATCH, INFER, MEGABYTE, PREDICT, MalformedRequest


def malformed_json(part: bytes) -> Iterator[MalformedRequest]:
    """Those around one good photograph, a PNG."""
    yield from _base64(part)
    yield from _bodies(part)
    yield from _batches(part)
    yield from _protocol()


def _base64(part: bytes) -> Iterator[MalformedRequest]:
    good = base64.b64encode(part).decode()
    yield _json("base64: empty", 422, "empty_image", {"image": {"b64": ""}})
    half = good[: len(good) // 8 * 4]
    yield _json("base64: half of a picture", 422, "truncated_image", {"image": {"b64": half}})


def _bodies(part: bytes) -> Iterator[MalformedRequest]:
    good = json.dumps({"image": {"b64": base64.b64encode(part).decode()}}).encode()
    texts: dict[str, bytes] = {
        "empty": b"",
        "100,000 lists": b"[" * 100_000,
        "4 MB of numbers": b"[" + b"0," * 2 * MEGABYTE + b"0]",
        "4 MB of unknown members": b"{" + b",".join(b'"%d":0' % n for n in range(500_000)) + b"}",
        "name of 257 characters": b'{"image": {"b64": "", "name": "%s"}}' % (b"n" * 257),
        "member name of 1 MB": b'{"image": {"b64": "", "' + b"a" * MEGABYTE + b'": 1}}',
        "number of 1 MB": b'{"image": ' + b"9" * MEGABYTE + b"}",
        "Infinity": b'{"image": {"b64": Infinity}}',
        "null": b"null",
        "image is a text": b'{"image": "iVBORw0KGgo="}',
        "unknown member": b'{"image": {"b64": ""}, "threshold": 0.5}',
        "URL": b'{"image": {"url": "http://127.0.0.1/"}}',
        "invalid UTF-8": b'{"image": {"b64": "\xff\xfe"}}',
        "half a surrogate": b'{"image": {"b64": "\\ud800"}}',
        "half of UTF-16": b"\xff\xfe" + good,
        "byte order mark alone": b"\xef\xbb\xbf",
        "UTF-32 beyond Unicode": b"\xff\xfe\0\0\xff\xff\xff\xff",
    }
    for name, text in texts.items():
        yield _text_json(f"JSON: {name}", 400, "bad_json", text)
    # The last one counts, as in every JSON parser for Python.
    doubled = b'{"image": {"b64": "iVBO"}, ' + good[1:]
    yield _text_json("JSON: member twice, the last one good", 200, "", doubled)
    last = good[:-1] + b', "image": {"b64": "iVBO"}}'
    yield _text_json("JSON: member twice, the last one wrong", 422, "unsupported_type", last)
    named = b'{"image": {"b64": "AAAA", "name": "\\u0000\\u001b[31m{path}%s"}}'
    yield _text_json("JSON: odd name", 422, "unsupported_type", named)


def _batches(part: bytes) -> Iterator[MalformedRequest]:
    empty = {"b64": ""}
    yield _json("batch: no images", 400, "bad_json", {"images": []}, BATCH)
    yield _json("batch: 65 images", 400, "too_many_images", {"images": [empty] * 65}, BATCH)
    yield _json("batch: 100,000 images", 400, "bad_json", {"images": [empty] * 100_000}, BATCH)
    yield _json("batch: one image", 400, "bad_json", {"image": empty}, BATCH)
    bad = {"images": [empty, {"b64": "!"}]}
    yield _json("batch: one of two is no base64", 400, "bad_base64", bad, BATCH)
    raw = ((b"content-type", b"image/png"),)
    yield MalformedRequest("batch: raw", 415, "unsupported_content_type", part, raw, BATCH)


def _protocol() -> Iterator[MalformedRequest]:
    """Some of them; `tests/api/protocol_v2` has the others."""
    yield _json("v2: no inputs", 400, "bad_tensor", {"inputs": []}, INFER)
    yield _text_json("v2: no JSON", 400, "bad_json", b"\x00", INFER)
    yield _text_json("v2: 4 MB of numbers", 413, "too_many_values", b"0," * 2 * MEGABYTE, INFER)
    headers = ((b"inference-header-content-length", b"9" * 5000),)
    yield MalformedRequest("v2: header length", 400, "bad_header_length", b"{}", headers, INFER)


def _text_json(name: str, status: int, code: str, body: bytes, path: str = PREDICT) -> MalformedRequest:
    return MalformedRequest(name, status, code, body, ((b"content-type", b"application/json"),), path)


def _json(name: str, status: int, code: str, body: object, path: str = PREDICT) -> MalformedRequest:
    return _text_json(name, status, code, json.dumps(body).encode(), path)
