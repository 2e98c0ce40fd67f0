"""Signatures of webhooks, after the Standard Webhooks specification 1.0 (standardwebhooks.com).

A receiver in Python needs no more than `verify_webhook`; for other languages there are the libraries of the
specification.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

from segdec.errors import ConfigError

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
SECRET_PREFIX, VERSION = "whsec_", "v1"
SECRET_BYTES = (24, 64)
TOLERANCE_S = 300.0
"""Seconds by which a signature's time may differ from the receiver's clock."""


class SignatureError(ValueError):
    """A webhook that does not come from whom it says, or not now."""


def sign_webhook(secrets: Sequence[str], event_id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """Returns the headers that vouch for a body.

    Args:
        secrets: Each as `whsec_BASE64`; several while one follows another.
        event_id: Of the event, the same each time it is sent.
        timestamp_s: When it is sent, seconds since 1970.
        body: As it is sent.

    Raises:
        ConfigError: If a secret is of another form.
    """
    signatures = [_sign(read_secret(secret), event_id, str(timestamp_s), body) for secret in secrets]
    return {ID: event_id, TIMESTAMP: str(timestamp_s), SIGNATURE: " ".join(signatures)}


def verify_webhook(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    now_s: float,
    tolerance_s: float = TOLERANCE_S,
) -> str:
    """Returns the id of the event, by which repeats are known, if the body comes from who has the secret.

    Args:
        secret: `whsec_BASE64`.
        headers: Of the request, their names in small letters or in a mapping that does not mind.
        body: As it arrived: JSON that was parsed and written again has another signature.
        now_s: The receiver's clock, seconds since 1970.
        tolerance_s: Seconds by which the sender's clock may differ; older ones may be repeats by others.

    Raises:
        SignatureError: If a header is missing, the time is another one, or no signature matches.
        ConfigError: If the secret is of another form.
    """
    event_id, timestamp, given = (headers.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
    if not event_id or not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise SignatureError(f"The headers {ID} and {TIMESTAMP} are missing, or the time is none.")
    if abs(now_s - int(timestamp)) > tolerance_s:
        raise SignatureError(
            f"The webhook is not of now, give or take {tolerance_s:g} s. Compare the clocks."
        )
    expected = _sign(read_secret(secret), event_id, timestamp, body).encode()
    if not any(hmac.compare_digest(expected, one.encode()) for one in given.split(" ")):
        raise SignatureError(f"No signature in {SIGNATURE} is of this secret and this body.")
    return event_id


def read_secret(text: str) -> bytes:
    """Returns the bytes of a secret.

    Raises:
        ConfigError: If it is no `whsec_BASE64` of 24 to 64 bytes.
    """
    try:
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not text.startswith(SECRET_PREFIX) or not SECRET_BYTES[0] <= len(secret) <= SECRET_BYTES[1]:
        raise ConfigError(  # without the text, which may be a secret all the same
            f"A webhook's secret has another form. Expected {SECRET_PREFIX} and 24 to 64 bytes in base64: "
            'echo "whsec_$(openssl rand -base64 32)"'
        )
    return secret


def _sign(secret: bytes, event_id: str, timestamp: str, body: bytes) -> str:
    signed = f"{event_id}.{timestamp}.".encode() + body
    digest = hmac.new(secret, signed, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode('ascii')}"
