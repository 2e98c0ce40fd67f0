"""JSON that contains files: its text encoding, and base64."""

import binascii
import json

from api.errors import RequestError

STANDARD_ALPHABET = bytes.maketrans(b"-_", b"+/")
"""Replaces the characters of the URL-safe alphabet."""


def to_utf8(body: bytes) -> bytes:
    """Returns JSON in UTF-8 without a byte-order mark; .NET and PowerShell also send UTF-16.

    Raises:
        RequestError: 400, for damaged UTF-16 or UTF-32. (The JSON parser checks UTF-8.)
    """
    encoding = json.detect_encoding(body)
    if encoding == "utf-8":
        return body
    try:
        return body.decode(encoding).encode()
    except UnicodeError as error:
        raise RequestError(
            400, "bad_json", f"The JSON is not {encoding.upper()} ({error}). Send it as UTF-8."
        ) from error


def decode_base64(text: str, name: str) -> bytes:
    """Decodes a file: standard or URL-safe base64, with or without line breaks and padding, or a data URI.

    Raises:
        RequestError: 400, if it is not base64; the message begins with `name`.
    """
    try:
        encoded = _without_header(text).strip().encode("ascii")
        if b" " in encoded:
            raise ValueError("it has spaces, which may be lost plus signs")
        encoded = encoded.translate(STANDARD_ALPHABET, b"\r\n")
        if not encoded.endswith(b"=") and len(encoded) % 4 in (2, 3):
            encoded += b"=" * (-len(encoded) % 4)
        return binascii.a2b_base64(encoded, strict_mode=True)
    except ValueError as error:  # also for text that is not ASCII
        reason = "it is not ASCII" if isinstance(error, UnicodeError) else error
        detail = f"{name} is not base64 ({reason}). Encode the file, for example with: base64 part.png"
        raise RequestError(400, "bad_base64", detail) from error


def _without_header(text: str) -> str:
    if text[:5].lower() != "data:":
        return text
    header, _, data = text.partition(",")
    if not header.lower().endswith(";base64"):
        raise ValueError("a data URI without ';base64,'")
    return data
