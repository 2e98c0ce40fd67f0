"""Sends each event as an HTTP request, signed according to Standard Webhooks."""

import ssl
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Self

import httpx
import standardwebhooks

from api.delivery.settings import WebhookSettings
from api.delivery.sink import DeliveryError, FailureCause, OutboxMessage, make_tls_context
from api.record.events import MEDIA_TYPE
from segdec import __version__
from segdec.errors import ConfigError
from segdec.webhooks import read_secret

TIMEOUT = httpx.Timeout(20.0, connect=5.0)
MAX_ANSWER_BYTES = 64 * 1024
"""Bytes of an answer that are read, so that its connection can be reused; they are ignored."""
TEMPORARY_STATUSES = {401, 403, 407, 408, 425, 429, 502, 503, 504}
"""Statuses that do not concern the event: authentication, load, an unreachable receiver."""


class Webhook:
    """An HTTP receiver.

    Each of `secrets` signs every event. `clock` returns seconds since 1970.

    Raises:
        ConfigError: If the URL has another form.
    """

    name = "webhook"
    remark = ""

    def __init__(
        self,
        url: str,
        secrets: Sequence[str],
        tls_context: ssl.SSLContext,
        clock: Callable[[], float] = time.time,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        address = _parse_url(url)
        self._url, self._clock = address.copy_with(userinfo=b""), clock
        self._signers = [standardwebhooks.Webhook(secret) for secret in secrets]
        # Without the environment: a proxy for other programs would receive the events.
        self._client = httpx.AsyncClient(
            auth=(address.username, address.password) if address.userinfo else None,
            verify=tls_context,
            timeout=TIMEOUT,
            trust_env=False,
            follow_redirects=False,
            headers={"User-Agent": f"segdec/{__version__}", "Content-Type": MEDIA_TYPE},
            transport=transport,
        )

    @classmethod
    def from_settings(cls, settings: WebhookSettings) -> Self | None:
        if settings.outbox_webhook is None:
            return None
        file = settings.outbox_webhook_secrets
        secrets = [] if file is None else load_secrets(file)
        return cls(settings.outbox_webhook, secrets, make_tls_context(settings.outbox_ca))

    async def deliver(self, message: OutboxMessage) -> None:
        body, sent_at = message.event, int(self._clock())
        moment = datetime.fromtimestamp(sent_at, UTC)
        signatures = [signer.sign(message.event_id, moment, body) for signer in self._signers]
        headers = {
            "webhook-id": message.event_id,
            "webhook-timestamp": str(sent_at),
            "webhook-signature": " ".join(signatures),
        }
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                await _read(response)
        except httpx.HTTPError as error:
            raise DeliveryError(f"{type(error).__name__}: {error}", "unreachable") from error
        if not response.is_success:
            raise _explain(response, self._clock())

    async def close(self) -> None:
        await self._client.aclose()


async def _read(response: httpx.Response) -> None:
    size = 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            return


def _explain(response: httpx.Response, now: float) -> DeliveryError:
    status = response.status_code
    cause: FailureCause = "refused" if response.is_client_error else "failed"
    if status in TEMPORARY_STATUSES or response.is_redirect:
        cause = "unreachable"
    reason = "a redirect, which is not followed" if response.is_redirect else response.reason_phrase
    retry_after_s = _parse_retry_after(response.headers.get("retry-after", ""), now)
    return DeliveryError(f"HTTP {status} {reason}", cause, retry_after_s)


def _parse_retry_after(value: str, now: float) -> float:
    """Parses Retry-After, seconds or an HTTP date; returns 0 if it is invalid."""
    if value.isascii() and value.isdecimal() and len(value) < 10:
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return 0.0


def _parse_url(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise ConfigError(  # without the URL, which may contain a password
            "--outbox-webhook is not the URL of a receiver. Expected for example https://mes.plant/events."
        )
    return address


def load_secrets(file: Path) -> list[str]:
    """Reads a file with one secret per line; skips empty lines and comments (`#`).

    Raises:
        ConfigError: If the file cannot be read, has no secret, or an invalid one.
    """
    try:
        lines = file.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the webhook's secrets in {file}: {error}.") from error
    secrets = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    if not secrets:
        raise ConfigError(f"{file} has no secret. Expected a line whsec_BASE64.")
    for secret in secrets:
        read_secret(secret)
    return secrets
