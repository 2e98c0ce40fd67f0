"""JSON that is broken, too much or about something else; see `malformed_requests`."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from tests.api.malformed_requests import BATCH, INFER, MEGABYTE, PREDICT, MalformedRequest


def malformed_json(part: bytes) -> Iterator[MalformedRequest]:
    """Those around one good photograph, a PNG."""
    yield from _base64(part)
    yield from _bodies(part)
    yield from _batches(part)
    yield from _tensors(part)
    yield from _protocol(part)


def _base64(part: bytes) -> Iterator[MalformedRequest]:
    good = base64.b64encode(part).decode()
    wrong = {
        "another alphabet": good[:-4] + "-_-_",
        "padding in the middle": "AAA=" + good,
        "one = too few": "iVBORw0KGg",
        "one = too many": "iVBORw0KGgo==",
        "only padding": "====",
        "one letter": "A",
        "data URL": "data:image/png;base64," + good,
        "line breaks": "\r\n".join(good[i : i + 76] for i in range(0, len(good), 76)) + "\r\n",
        "spaces": " " + good,
        "not ASCII": good[:-4] + "größ",
        "wide letters": "\U0001f529" * 100,
        "NUL": good[:-4] + "\0\0\0\0",
        "percent encoding": good.replace("=", "%3D") + "%3D",
        "hexadecimal": part.hex() + "!",
    }
    for name, text in wrong.items():
        yield _json(f"base64: {name}", 400, "bad_base64", {"image": {"b64": text}})
    yield _json("base64: empty", 422, "empty_image", {"image": {"b64": ""}})
    twice = base64.b64encode(good.encode()).decode()
    yield _json("base64: twice", 422, "unsupported_type", {"image": {"b64": twice}})
    for tenth in range(1, 10):
        cut = good[: len(good) * tenth // 10 // 4 * 4]
        yield _json(f"base64: {tenth} tenths of a picture", 422, "truncated_image", {"image": {"b64": cut}})


def _bodies(part: bytes) -> Iterator[MalformedRequest]:
    good = json.dumps({"image": {"b64": base64.b64encode(part).decode()}}).encode()
    texts: dict[str, bytes] = {
        "empty": b"",
        "spaces": b" " * 1000,
        "cut": good[:-1],
        "cut in the text": good[: len(good) // 2],
        "trailing garbage": good + b"x",
        "twice": good + good,
        "100,000 lists": b"[" * 100_000,
        "100,000 closed lists": b"[" * 100_000 + b"]" * 100_000,
        "250 lists": b"[" * 250 + b"]" * 250,
        "100,000 objects": b'{"image":' * 100_000,
        "250 objects": b'{"image":' * 250 + b"1" + b"}" * 250,
        "4 MB of numbers": b"[" + b"0," * 2 * MEGABYTE + b"0]",
        "4 MB of numbers for an image": b'{"image": [' + b"0," * 2 * MEGABYTE + b"0]}",
        "4 MB of unknown members": b"{" + b",".join(b'"%d":0' % n for n in range(500_000)) + b"}",
        "member name of 1 MB": b'{"image": {"b64": "", "' + b"a" * MEGABYTE + b'": 1}}',
        "number of 1 MB": b'{"image": ' + b"9" * MEGABYTE + b"}",
        "number beyond range": b'{"image": 1e999999}',
        "NaN": b'{"image": NaN}',
        "Infinity": b'{"image": {"b64": Infinity}}',
        "minus Infinity": b"-Infinity",
        "null": b"null",
        "true": b"true",
        "text": b'"image"',
        "number": b"17",
        "list": b"[]",
        "no members": b"{}",
        "image is null": b'{"image": null}',
        "image is a text": b'{"image": "iVBORw0KGgo="}',
        "image is a list": b'{"image": [{"b64": ""}]}',
        "b64 is a number": b'{"image": {"b64": 1}}',
        "b64 is null": b'{"image": {"b64": null}}',
        "b64 is a list": b'{"image": {"b64": ["iVBO"]}}',
        "name is a number": b'{"image": {"b64": "", "name": 1}}',
        "name of 257 letters": b'{"image": {"b64": "", "name": "%s"}}' % (b"n" * 257),
        "unknown member": b'{"image": {"b64": ""}, "threshold": 0.5}',
        "URL": b'{"image": {"url": "http://127.0.0.1/"}}',
        "path": b'{"image": {"path": "/etc/passwd"}}',
        "prototype": b'{"__proto__": {"image": {"b64": ""}}}',
        "invalid UTF-8": b'{"image": {"b64": "\xff\xfe"}}',
        "overlong UTF-8": b'{"image": {"b64": "\xc0\xaf"}}',
        "half a surrogate": b'{"image": {"b64": "\\ud800"}}',
        "half a surrogate in the name": b'{"image": {"b64": "AAAA", "name": "\\udfff"}}',
        "byte order mark": b"\xef\xbb\xbf" + good,
        "UTF-16": good.decode().encode("utf-16"),
        "NUL": b"\0" + good,
        "single quotes": good.replace(b'"', b"'"),
        "comment": b"/* */" + good,
        "trailing comma": good.replace(b"}}", b",}}"),
        "control character": b'{"image": {"b64": "\n"}}',
        "several images": b'{"images": [{"b64": ""}]}',
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


def _tensors(part: bytes) -> Iterator[MalformedRequest]:
    encoded = base64.b64encode(part).decode()
    image = {"name": "image", "shape": [1], "datatype": "BYTES", "data": [encoded]}
    pixels = {"name": "pixels", "shape": [1, 2, 2, 1], "datatype": "UINT8", "data": [1, 2, 3, 4]}
    wrong: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "more elements than the shape says": (image, {"data": [encoded] * 2}),
        "fewer elements than the shape says": (image, {"shape": [2]}),
        "no elements": (image, {"shape": [0], "data": []}),
        "shape of a scalar": (image, {"shape": []}),
        "shape of two axes": (image, {"shape": [1, 1]}),
        "huge count": (pixels, {"shape": [1, 2**40, 2**40, 1]}),
        "fewer values than the shape says": (pixels, {"data": [1, 2, 3]}),
        "more values than the shape says": (pixels, {"data": [1] * 5}),
        "nested otherwise than the shape says": (pixels, {"data": [[[[1, 2], [3, 4]]]]}),
        "side of 0": (pixels, {"shape": [1, 0, 2, 1], "data": []}),
        "two channels": (pixels, {"shape": [1, 2, 1, 2]}),
        "value of 256": (pixels, {"data": [1, 2, 3, 256]}),
        "value of -1": (pixels, {"data": [1, 2, 3, -1]}),
        "value of true": (pixels, {"data": [1, 2, 3, True]}),
        "value of 1.5": (pixels, {"data": [1, 2, 3, 1.5]}),
        "value of null": (pixels, {"data": [1, 2, 3, None]}),
        "value of text": (pixels, {"data": ["1", "2", "3", "4"]}),
        "other datatype": (pixels, {"datatype": "FP32"}),
        "unknown datatype": (image, {"datatype": "IMAGE"}),
        "neither data nor size": (image, {"data": None}),
        "binary data that is missing": (image, {"data": None, "parameters": {"binary_data_size": 9}}),
        "shared memory": (image, {"parameters": {"shared_memory_region": "/dev/shm/x"}}),
    }
    for name, (tensor, changes) in wrong.items():
        yield _json(f"v2: {name}", 400, "bad_tensor", {"inputs": [{**tensor, **changes}]}, INFER)


def _protocol(part: bytes) -> Iterator[MalformedRequest]:
    encoded = base64.b64encode(part).decode()
    image = {"name": "image", "shape": [1], "datatype": "BYTES", "data": [encoded]}
    pixels = {"name": "pixels", "shape": [1, 2, 2, 1], "datatype": "UINT8", "data": [1, 2, 3, 4]}
    for name, shape in {
        "negative": [-1],
        "of text": ["1"],
        "of 2⁷⁰": [2**70],
        "of 9 axes": [1] * 9,
    }.items():
        yield _json(f"v2: shape {name}", 400, "bad_json", {"inputs": [{**image, "shape": shape}]}, INFER)
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
    for value in (b"-1", b"nan", b"1e3", b"99999", b"9" * 5000, b""):
        headers = ((b"inference-header-content-length", value),)
        name = f"v2: header length {value[:20]!r}"
        yield MalformedRequest(name, 400, "bad_header_length", b"{}", headers, INFER)
    zipped = ((b"content-encoding", b"gzip"),)
    yield MalformedRequest("v2: gzip", 415, "unsupported_content_encoding", b"\x1f\x8b", zipped, INFER)


def _text_json(name: str, status: int, code: str, body: bytes, path: str = PREDICT) -> MalformedRequest:
    return MalformedRequest(name, status, code, body, ((b"content-type", b"application/json"),), path)


def _json(name: str, status: int, code: str, body: object, path: str = PREDICT) -> MalformedRequest:
    return _text_json(name, status, code, json.dumps(body).encode(), path)
