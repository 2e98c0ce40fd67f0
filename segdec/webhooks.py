"""Webhook signatures by the Standard Webhooks specification 1.0 (standardwebhooks.com).

Receivers in Python call `verify_webhook`; other languages use the specification's libraries.
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
"""Maximum difference between a signature's time and the receiver's clock, seconds."""


class SignatureError(ValueError):
    """A webhook with a wrong signature or time."""


def sign_webhook(secrets: Sequence[str], event_id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """Returns the signature headers of a body.

    Args:
        secrets: Each as `whsec_BASE64`; several during a change of the secret.
        event_id: Id of the event, the same for all deliveries.
        timestamp_s: Time of the delivery, seconds since 1970.
        body: Body of the request.

    Raises:
        ConfigError: If a secret has another form.
    """
    signatures = [_sign(read_secret(secret), event_id, str(timestamp_s), body) for secret in secrets]
    return {ID: event_id, TIMESTAMP: str(timestamp_s), SIGNATURE: " ".join(signatures)}


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, now_s: float, tolerance_s: float = TOLERANCE_S
) -> str:
    """Verifies a webhook and returns the id of its event, which identifies repeated deliveries.

    Args:
        secret: `whsec_BASE64`.
        headers: Headers of the request, with lower-case names or in a case-insensitive mapping.
        body: Body exactly as received: JSON that was parsed and serialised again has another signature.
        now_s: The receiver's clock, seconds since 1970.
        tolerance_s: Maximum difference of the sender's clock, seconds; older requests may be replays.

    Raises:
        SignatureError: If a header is missing, the time differs too much, or no signature matches.
        ConfigError: If the secret has another form.
    """
    event_id, timestamp, given = (headers.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
    if not event_id or not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise SignatureError(f"The headers {ID} and {TIMESTAMP} are missing or invalid.")
    if abs(now_s - int(timestamp)) > tolerance_s:
        raise SignatureError(
            f"The webhook's time differs from now by more than {tolerance_s:g} s. Compare the clocks."
        )
    expected = _sign(read_secret(secret), event_id, timestamp, body).encode()
    if not any(hmac.compare_digest(expected, one.encode()) for one in given.split(" ")):
        raise SignatureError(f"No signature in {SIGNATURE} matches this secret and body.")
    return event_id


def read_secret(text: str) -> bytes:
    """Decodes a secret; raises ConfigError if it is not `whsec_BASE64` with 24 to 64 bytes."""
    try:
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not text.startswith(SECRET_PREFIX) or not SECRET_BYTES[0] <= len(secret) <= SECRET_BYTES[1]:
        raise ConfigError(  # without the text, which may be secret
            f"A webhook secret has the wrong form. Expected {SECRET_PREFIX} and 24 to 64 bytes in base64: "
            'echo "whsec_$(openssl rand -base64 32)"'
        )
    return secret


def _sign(secret: bytes, event_id: str, timestamp: str, body: bytes) -> str:
    signed = f"{event_id}.{timestamp}.".encode() + body
    digest = hmac.new(secret, signed, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode('ascii')}"
