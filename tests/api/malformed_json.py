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
    yield from _protocol(part)


def _base64(part: bytes) -> Iterator[MalformedRequest]:
    good = base64.b64encode(part).decode()
    wrong = {
        "another alphabet": good[:-4] + "-_-_",
        "padding in the middle": "AAA=" + good,
        "one = too few": "iVBORw0KGg",
        "data URL": "data:image/png;base64," + good,
        "line breaks": "\r\n".join(good[i : i + 76] for i in range(0, len(good), 76)) + "\r\n",
        "not ASCII": good[:-4] + "größ",
        "NUL": good[:-4] + "\0\0\0\0",
    }
    for name, text in wrong.items():
        yield _json(f"base64: {name}", 400, "bad_base64", {"image": {"b64": text}})
    yield _json("base64: empty", 422, "empty_image", {"image": {"b64": ""}})
    twice = base64.b64encode(good.encode()).decode()
    yield _json("base64: twice", 422, "unsupported_type", {"image": {"b64": twice}})
    for tenth in (1, 5, 9):
        cut = good[: len(good) * tenth // 10 // 4 * 4]
        yield _json(f"base64: {tenth} tenths of a picture", 422, "truncated_image", {"image": {"b64": cut}})


def _bodies(part: bytes) -> Iterator[MalformedRequest]:
    good = json.dumps({"image": {"b64": base64.b64encode(part).decode()}}).encode()
    texts: dict[str, bytes] = {
        "empty": b"",
        "cut": good[:-1],
        "trailing garbage": good + b"x",
        "100,000 lists": b"[" * 100_000,
        "250 lists": b"[" * 250 + b"]" * 250,
        "4 MB of numbers": b"[" + b"0," * 2 * MEGABYTE + b"0]",
        "4 MB of unknown members": b"{" + b",".join(b'"%d":0' % n for n in range(500_000)) + b"}",
        "member name of 1 MB": b'{"image": {"b64": "", "' + b"a" * MEGABYTE + b'": 1}}',
        "number of 1 MB": b'{"image": ' + b"9" * MEGABYTE + b"}",
        "NaN": b'{"image": NaN}',
        "Infinity": b'{"image": {"b64": Infinity}}',
        "null": b"null",
        "no members": b"{}",
        "image is a text": b'{"image": "iVBORw0KGgo="}',
        "b64 is a number": b'{"image": {"b64": 1}}',
        "name is a number": b'{"image": {"b64": "", "name": 1}}',
        "name of 257 letters": b'{"image": {"b64": "", "name": "%s"}}' % (b"n" * 257),
        "unknown member": b'{"image": {"b64": ""}, "threshold": 0.5}',
        "URL": b'{"image": {"url": "http://127.0.0.1/"}}',
        "prototype": b'{"__proto__": {"image": {"b64": ""}}}',
        "invalid UTF-8": b'{"image": {"b64": "\xff\xfe"}}',
        "half a surrogate": b'{"image": {"b64": "\\ud800"}}',
        "byte order mark": b"\xef\xbb\xbf" + good,
        "UTF-16": good.decode().encode("utf-16"),
        "NUL": b"\0" + good,
        "control character": b'{"image": {"b64": "\n"}}',
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
    yield _json("batch: wrong images", 400, "bad_json", {"images": [0] * 10_000}, BATCH)
    yield _json("batch: one image", 400, "bad_json", {"image": empty}, BATCH)
    bad = {"images": [empty, {"b64": "!"}]}
    yield _json("batch: one of two is no base64", 400, "bad_base64", bad, BATCH)
    raw = ((b"content-type", b"image/png"),)
    yield MalformedRequest("batch: raw", 415, "unsupported_content_type", part, raw, BATCH)


def _protocol(part: bytes) -> Iterator[MalformedRequest]:
    encoded = base64.b64encode(part).decode()
    image = {"name": "image", "shape": [1], "datatype": "BYTES", "data": [encoded]}
    pixels = {"name": "pixels", "shape": [1, 2, 2, 1], "datatype": "UINT8", "data": [1, 2, 3, 4]}
    huge = {"inputs": [{**image, "shape": [2**70]}]}
    yield _json("v2: shape of 2⁷⁰", 400, "bad_json", huge, INFER)
    yield _json("v2: no inputs", 400, "bad_tensor", {"inputs": []}, INFER)
    yield _json("v2: two inputs", 400, "bad_tensor", {"inputs": [image, pixels]}, INFER)
    unknown = {"inputs": [{**image, "name": "../image"}]}
    yield _json("v2: unknown input", 400, "unknown_tensor", unknown, INFER)
    output = {"inputs": [image], "outputs": [{"name": "label\0"}]}
    yield _json("v2: unknown output", 400, "unknown_tensor", output, INFER)
    cut = {"inputs": [{**image, "data": [base64.b64encode(part[:-20]).decode()]}]}
    yield _json("v2: cut picture", 422, "truncated_image", cut, INFER)
    threshold = {"inputs": [image], "parameters": {"threshold": 2}}
    yield _json("v2: threshold of 2", 400, "bad_parameter", threshold, INFER)
    yield _text_json("v2: no JSON", 400, "bad_json", b"\x00", INFER)
    yield _text_json("v2: 4 MB of numbers", 413, "too_many_values", b"0," * 2 * MEGABYTE, INFER)
    for value in (b"-1", b"99999", b"9" * 5000, b""):
        headers = ((b"inference-header-content-length", value),)
        name = f"v2: header length {value[:20]!r}"
        yield MalformedRequest(name, 400, "bad_header_length", b"{}", headers, INFER)
    zipped = ((b"content-encoding", b"gzip"),)
    yield MalformedRequest("v2: gzip", 415, "unsupported_content_encoding", b"\x1f\x8b", zipped, INFER)


def _text_json(name: str, status: int, code: str, body: bytes, path: str = PREDICT) -> MalformedRequest:
    return MalformedRequest(name, status, code, body, ((b"content-type", b"application/json"),), path)


def _json(name: str, status: int, code: str, body: object, path: str = PREDICT) -> MalformedRequest:
    return _text_json(name, status, code, json.dumps(body).encode(), path)
