"""Webhook signatures by the Standard Webhooks specification 1.0 (standardwebhooks.com).

Receivers in Python call `verify_webhook`; other languages use the specification's libraries.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping

from segdec.errors import ConfigError

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
SECRET_PREFIX, VERSION = "whsec_", "v1"
SECRET_BYTES = (24, 64)
TOLERANCE_S = 300.0
"""Maximum difference between a signature's time and the receiver's clock, seconds."""


class SignatureError(ValueError):
    """A webhook with a wrong signature or time."""


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
    signed = f"{event_id}.{timestamp}.".encode() + body
    digest = hmac.new(read_secret(secret), signed, hashlib.sha256).digest()
    expected = f"{VERSION},".encode() + base64.b64encode(digest)
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
