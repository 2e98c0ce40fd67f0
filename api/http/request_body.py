"""Reads request bodies within the limits of the service, and JSON in them."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from api.errors import RequestError
from api.http.admission import BODY_COPIES, JSON_BODY_COPIES
from api.http.json_files import to_utf8
from api.http.open_uploads import OpenUpload

FORM_TYPE = "multipart/form-data"
JSON_TYPE = "application/json"
RAW_TYPES = {"application/octet-stream"}
MAX_LENGTH_DIGITS = 18
"""Digits of a Content-Length that are parsed; Python raises for thousands of them."""

Body = TypeVar("Body", bound=BaseModel)


def media_type(request: Request) -> str:
    """Returns the Content-Type without parameters, in lower case; empty if there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_raw(kind: str) -> bool:
    """Returns whether a body of this type is a file. RFC 9110 allows that for a body without a type."""
    return not kind or kind in RAW_TYPES or kind.startswith("image/")


def is_json(kind: str) -> bool:
    """Returns whether a body of this type is JSON: `application/json`, `text/json`, `application/…+json`."""
    return kind in (JSON_TYPE, "text/json") or (kind.startswith("application/") and kind.endswith("+json"))


async def read_body(request: Request, limit: int, upload: OpenUpload) -> bytes:
    """Reads the complete body; errors as `read_chunks`."""
    return b"".join([chunk async for chunk in read_chunks(request, limit, upload)])


async def read_chunks(request: Request, limit: int, upload: OpenUpload) -> AsyncGenerator[bytes, None]:
    """Yields the body; reserves memory for it, ahead of what has arrived if its length is known.

    Raises:
        RequestError: 413 if it has more than `limit` bytes, 415 if it is compressed, 503 if the memory is
            full.
    """
    refuse_compressed(request)
    declared, kind = request.headers.get("content-length", ""), media_type(request)
    if declared.isdecimal() and (len(declared) > MAX_LENGTH_DIGITS or int(declared) > limit):
        raise _too_large(declared[:MAX_LENGTH_DIGITS], limit)
    copies = BODY_COPIES if kind == FORM_TYPE or is_raw(kind) else JSON_BODY_COPIES
    expected, reserved, received = int(declared) if declared.isdecimal() else 0, 0, 0
    upload.check_memory(copies * expected)
    async for chunk in request.stream():
        received += len(chunk)
        if received > limit:
            raise _too_large(f"more than {limit}", limit)
        upload.receive(len(chunk))
        if received > reserved:
            needed = max(received, min(2 * received, expected))
            upload.reserve_memory(copies * (needed - reserved))
            reserved = needed
        yield chunk


def _too_large(size: str, limit: int) -> RequestError:
    text = "The body has {size} bytes; expected at most {limit}. Send a smaller file."
    return RequestError(413, "body_too_large", text, size=size, limit=limit, gigabytes=limit / 1e9)


def refuse_compressed(request: Request) -> None:
    """Rejects a compressed body, whose decompressed size is unknown; raises a RequestError, 415."""
    encodings = ", ".join(request.headers.getlist("content-encoding"))
    if {word.strip().lower() for word in encodings.split(",")} <= {"", "identity"}:
        return
    detail = (
        f"Content-Encoding '{encodings}'; expected none. Send the body as it is: photographs are compressed "
        "already."
    )
    raise RequestError(415, "unsupported_content_encoding", detail, {"Accept-Encoding": "identity"})


# === JSON ===


def check_unique_names(body: bytes) -> None:
    """Raises a RequestError, 400, if a JSON object has a name twice: parsers keep only the last one."""

    def check(pairs: list[tuple[str, object]]) -> None:
        names = Counter(name for name, _ in pairs)
        if twice := [name for name, count in names.items() if count > 1]:
            detail = f"The JSON has the name {twice[0]!r:.80} twice in one object. Expected each name once."
            raise RequestError(400, "bad_json", detail)

    json.loads(to_utf8(body), object_pairs_hook=check)


def parse_json(
    body: bytes, model: type[Body], max_values: int, make_error: Callable[[ValidationError], RequestError]
) -> Body:
    """Parses a JSON body as `model`; `make_error` makes the error if it does not match.

    More than `max_values` values are rejected, to limit memory; a comma inside a string counts as a value.

    Raises:
        RequestError: 400.
    """
    body = to_utf8(body)
    values = sum(map(body.count, (b",", b"[", b"{")))  # every value except the first follows one of these
    if values > max_values:
        raise RequestError(
            400, "bad_json", f"The JSON has about {values} values; expected at most {max_values}."
        )
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise make_error(error) from error
