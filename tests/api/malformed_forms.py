"""Forms that are broken, cut off, too much or about something else; see `malformed_requests`."""

from collections.abc import Iterator

import numpy as np

from tests.api.malformed_requests import BATCH, MEGABYTE, PREDICT, MalformedRequest

FORM = b"multipart/form-data; boundary=b"


def malformed_forms(part: bytes) -> Iterator[MalformedRequest]:
    """Those around one good photograph, a PNG."""
    yield from _boundaries(part)
    yield from _broken(part)
    yield from _other_fields(part)
    yield from _odd_files(part)
    yield from _cut(part)
    yield from _charsets()
    yield from _noise(part)
    yield _multipart("batch: 65 files", 400, "bad_form", _form(*[_file(b"x")] * 65), BATCH)
    yield _multipart("batch: no file", 400, "missing_file", _form(), BATCH)


def _boundaries(part: bytes) -> Iterator[MalformedRequest]:
    file = _file(part)
    for name, value in {
        "no boundary": b"multipart/form-data",
        "empty boundary": b"multipart/form-data; boundary=",
        "other boundary": b"multipart/form-data; boundary=c",
        "boundary of 300 bytes": b"multipart/form-data; boundary=" + b"b" * 300,
        "boundary of odd bytes": b"multipart/form-data; boundary=\xff\x80",
        "comma for semicolon": b"multipart/form-data, boundary=b",
    }.items():
        status, code = (415, "unsupported_content_type") if b"," in value else (400, "bad_form")
        yield MalformedRequest(f"form: {name}", status, code, _form(file), ((b"content-type", value),))


def _broken(part: bytes) -> Iterator[MalformedRequest]:
    file = _file(part)
    broken = {
        "empty body": b"",
        "no headers": b"--b\r\n\r\n" + part + b"\r\n--b--\r\n",
        "header without colon": b"--b\r\nContent-Disposition\r\n\r\nx\r\n--b--\r\n",
        "no field name": b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
        "line feeds alone": _form(file).replace(b"\r\n", b"\n"),
        "header line of 1 MB": b"--b\r\nX: " + b"x" * MEGABYTE + b"\r\n\r\nx\r\n--b--\r\n",
        "100,000 headers": b"--b\r\n" + b"X: y\r\n" * 100_000 + b"\r\nx\r\n--b--\r\n",
        "10,000 files": _form(*[_file(b"x")] * 10_000),
        "10,000 texts": _form(*[_text(b"x")] * 10_000),
        "text of 2 MB": _form(_text(b"x" * 2 * MEGABYTE, name=b"image")),
        "two files": _form(file, file),
        "file and text": _form(file, _text(b"x")),
    }
    for name, body in broken.items():
        yield _multipart(f"form: {name}", 400, "bad_form", body)


def _other_fields(part: bytes) -> Iterator[MalformedRequest]:
    missing = {
        "only the closing boundary": b"--b--\r\n",
        "field of odd bytes": _form(_file(part, name=b"\xff\x00")),
        "text with an empty name of a file": _form(_file(b"nothing", filename=b"")),
    }
    for name, body in missing.items():
        yield _multipart(f"form: {name}", 400, "missing_file", body)


def _odd_files(part: bytes) -> Iterator[MalformedRequest]:
    yield _multipart("form: empty file", 422, "empty_image", _form(_file(b"")))
    yield _multipart("form: form in the form", 422, "unsupported_type", _form(_file(_nested(part))))
    names = {"path": b"../../etc/passwd", "odd bytes": b"\xff\x00\x1b[31m"}
    for name, value in names.items():
        body = _form(_file(b"nothing", filename=value))
        yield _multipart(f"form: name of a file: {name}", 422, "unsupported_type", body)


def _cut(part: bytes) -> Iterator[MalformedRequest]:
    whole = _form(_file(part))
    yield _multipart("form: half of it", 400, "bad_form", whole[: len(whole) // 2])
    closed = _form(_file(part[: len(part) // 2]))
    yield _multipart("form: closed after half of its file", 422, "truncated_image", closed)


def _charsets() -> Iterator[MalformedRequest]:
    """Python has codecs that make no text, that fail with errors of their own, and that load modules."""
    names = {b"utf-7": b"+2AA-", b"idna": b"xn--\xff", b"base64": b"a", b"x" * 5000: b"a"}
    for charset, name in names.items():
        headers = ((b"content-type", FORM + b"; charset=" + charset),)
        body = _form(_file(b"nothing", filename=name))
        title = f"form: charset {charset[:20]!r}"
        yield MalformedRequest(title, 422, "unsupported_type", body, headers)


def _noise(part: bytes) -> Iterator[MalformedRequest]:
    """A form with bytes overwritten before its file, where every byte is syntax."""
    rng = np.random.default_rng(3)
    whole = _form(_file(part, name=b"other"))  # of which no damage makes a good one
    head = whole.index(part)
    for number in range(30):
        damaged = bytearray(whole)
        for place in rng.integers(0, head, 4).tolist():
            damaged[place] = int(rng.integers(0, 256))
        yield _multipart(f"form: damage {number}", 400, "bad_form or missing_file", bytes(damaged))


# === Parts ===


def _form(*parts: bytes) -> bytes:
    return b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + b"--b--\r\n"


def _file(data: bytes, *, name: bytes = b"file", filename: bytes = b"part.png") -> bytes:
    head = b'Content-Disposition: form-data; name="' + name + b'"; filename="' + filename + b'"\r\n'
    return head + b"Content-Type: image/png\r\n\r\n" + data


def _text(data: bytes, *, name: bytes = b"file") -> bytes:
    return b'Content-Disposition: form-data; name="' + name + b'"\r\n\r\n' + data


def _nested(data: bytes) -> bytes:
    return _form(_file(data)).replace(b"--b", b"--inner")


def _multipart(name: str, status: int, code: str, body: bytes, path: str = PREDICT) -> MalformedRequest:
    return MalformedRequest(name, status, code, body, ((b"content-type", FORM),), path)
