"""Requests that no sane client sends, and the answers that they deserve. Made by code, the same each time.

Here are those that are odd around their body; `malformed_forms` and `malformed_json` have the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass

PREDICT = "/v1/predict"
BATCH = "/v1/predict/batch"
INFER = "/v2/models/unnamed/infer"
MEGABYTE = 2**20

Headers = tuple[tuple[bytes, bytes], ...]
PNG: Headers = ((b"content-type", b"image/png"),)


@dataclass(frozen=True)
class MalformedRequest:
    """A request with a unique name, and the status and the code of its answer.

    The status is 200 and the code empty if it is harmless; the code may be `one or another`.
    """

    name: str
    status: int
    code: str
    body: bytes = b""
    headers: Headers = ()
    path: str = PREDICT
    method: str = "POST"


def malformed_requests(part: bytes) -> Iterator[MalformedRequest]:
    """Those around one good photograph, a PNG."""
    yield from _content_types(part)
    yield from _queries(part)
    yield from _headers(part)
    yield from _paths(part)
    yield from _methods()


def _content_types(part: bytes) -> Iterator[MalformedRequest]:
    wrong = ["text/plain", "images/png", "multipart/mixed; boundary=b", "application/json2", "*/*"]
    for declared in wrong:
        headers = ((b"content-type", declared.encode()),)
        yield _raw(part, f"Content-Type {declared!r}", 415, "unsupported_content_type", headers=headers)
    yield MalformedRequest("no Content-Type", 200, "", part)
    yield _raw(part, "empty Content-Type", 200, "", headers=((b"content-type", b""),))
    yield _raw(b"text", "text without a Content-Type", 422, "unsupported_type", headers=())
    for name, headers in {
        "odd bytes": ((b"content-type", b"\xff\xfe\x80"),),
        "60 kB": ((b"content-type", b"text/" + b"x" * 60_000),),
        "two of them, the first one wrong": ((b"content-type", b"text/plain"), *PNG),
    }.items():
        yield _raw(part, f"Content-Type: {name}", 415, "unsupported_content_type", headers=headers)
    json_ = ((b"content-type", b"application/json"),)
    yield _raw(part, "picture called JSON", 400, "bad_json", headers=json_)
    yield _raw(b"", "empty body", 422, "empty_image")
    yield _raw(b'{"image": {"b64": ""}}', "JSON called picture", 422, "unsupported_type")
    yield _raw(bytes(33 * MEGABYTE), "body of 33 MB", 413, "body_too_large")


def _queries(part: bytes) -> Iterator[MalformedRequest]:
    wrong = {
        "threshold": ("nan", "-inf", "1.0001", "1e400", "9" * 5000, "", "high", "%00", "0.5&threshold=nan"),
        "mask": ("", "PNG", "none,png", "%00", "x" * 5000),
        "space": ("", "Input", "input%00"),
    }
    queries = [f"{name}={word}" for name, words in wrong.items() for word in words]
    queries += [f"{name}=1" for name in ("Threshold", "", "__class__", "%ff", "x" * 5000)]
    for query in (*queries, "&".join(f"p{n}=1" for n in range(5000))):
        yield _raw(part, f"query: {query[:40]}", 400, "bad_parameter", path=f"{PREDICT}?{query}")
    yield _raw(part, "query: bare signs", 200, "", path=f"{PREDICT}?&&&")


def _headers(part: bytes) -> Iterator[MalformedRequest]:
    deadlines = (b"0", b"nan", b"inf", b"text", b"\xff", b"9" * 5000)
    for value in deadlines:
        headers = (*PNG, (b"x-deadline-ms", value))
        yield _raw(part, f"X-Deadline-Ms {value[:20]!r}", 400, "bad_parameter", headers=headers)
    passed = (*PNG, (b"x-deadline-ms", b"1e-300"))
    yield _raw(part, "X-Deadline-Ms that has passed", 504, "deadline_passed", headers=passed)
    length = (*PNG, (b"content-length", b"9" * 5000))
    yield _raw(part, "Content-Length of 5,000 digits", 413, "body_too_large", headers=length)
    for value in (b"", b"\xff\x80", b"a\tb", b"x" * 129, b"x" * 60_000, b'{"level":"error"}'):
        headers = (*PNG, (b"x-request-id", value))
        yield _raw(part, f"X-Request-ID {value[:20]!r}, {len(value)} bytes", 200, "", headers=headers)
    accepts = [b"image/png;q=nan", b"image/png;q=", b";;,,", b"\xff", b"," * 50_000]
    for value in accepts:
        headers = (*PNG, (b"accept", value))
        yield _raw(part, f"Accept {value[:30]!r}", 200, "", headers=headers)
    asked = (*PNG, (b"accept", b"image/png"))
    for form in ("none", "rle", "polygon"):
        path = f"{PREDICT}?mask={form}"
        yield _raw(part, f"Accept image/png, mask={form}", 400, "bad_parameter", headers=asked, path=path)
    many = (*PNG, *[(b"x-%d" % number, b"y") for number in range(1000)])
    yield _raw(part, "1,000 headers", 200, "", headers=many)


def _paths(part: bytes) -> Iterator[MalformedRequest]:
    names = ["other", "unnamed%00", "%2e%2e", "%ff%fe", "{name}", "a" * 5000, "%0d%0aX-Forged:%201"]
    for name in names:
        shown = name[:30]
        path = f"/v1/models/{name}"
        yield MalformedRequest(f"model {shown}", 404, "model_not_found", path=path, method="GET")
        path = f"/v1/models/unnamed/versions/{name}/predict"
        yield MalformedRequest(f"version {shown}", 404, "version_not_found", part, PNG, path)
    for path in (
        *("/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/v1/models/a%2fb", "/v1", "/v1/", "/v2/", "/%00"),
        *("/v1/models/unnamed/versions/0", "/V1/predict", "/v1//predict", "/.git/config", "/v1/predict/x"),
        *("/v1/models/unnamed/versions/%2e%2e%2f0/x", "/static/..%2f..%2fmain.py", "/docs/%2e%2e%2fmain.py"),
        *("/openapi.json%00", "/metrics/x", "/v2/models/unnamed/versions/0/config", "/" + "a/" * 5000),
    ):
        yield MalformedRequest(f"path {path[:50]}", 404, "not_found", path=path, method="GET")
    for name in ("other", "%2e%2e", "%00"):
        path = f"/v2/models/{name}/ready"
        yield MalformedRequest(f"v2 model {name}", 404, "model_not_found", path=path, method="GET")
        reload = f"/v1/admin/models/{name}/reload"
        yield MalformedRequest(f"reload of {name} without a key", 403, "admin_off", path=reload)


def _methods() -> Iterator[MalformedRequest]:
    wrong = {PREDICT: ("GET", "OPTIONS", "TRACE", "BREW", "get"), "/v1/models/unnamed": ("POST",)}
    wrong |= {"/livez": ("DELETE",), INFER: ("GET",), "/openapi.json": ("POST",)}
    for path, methods in wrong.items():
        for method in methods:
            name = f"{method} {path}"
            yield MalformedRequest(name, 405, "method_not_allowed", path=path, method=method)


def _raw(
    body: bytes, name: str, status: int, code: str, *, headers: Headers = PNG, path: str = PREDICT
) -> MalformedRequest:
    return MalformedRequest(name, status, code, body, headers, path)
