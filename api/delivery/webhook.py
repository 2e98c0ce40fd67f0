"""Sends each event as a request, signed if there is a secret."""

import ssl
import time
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

from api.delivery.sink import Blame, DeliveryError, OutboxMessage
from api.records.events import MEDIA_TYPE
from segdec import __version__
from segdec.errors import ConfigError
from segdec.webhooks import read_secret, sign_webhook

TIMEOUT = httpx.Timeout(20.0, connect=5.0)
MAX_ANSWER_BYTES = 64 * 1024
"""Bytes of an answer that are read, so that its connection can be used again; they say nothing to us."""
NOT_NOW = {401, 403, 407, 408, 425, 429, 502, 503, 504}
"""Statuses that do not blame the event: who we are, how busy the receiver is, or that it is not there."""


class Webhook:
    """A receiver over HTTP.

    Args:
        url: Its address, http or https; name and password in it are sent as basic authentication.
        secrets: With which events are signed.
        trust: What certificates are believed.
        clock: Seconds since 1970.
        transport: Of the requests; default: the network.

    Raises:
        ConfigError: If the address is none.
    """

    name = "webhook"

    def __init__(
        self,
        url: str,
        secrets: Sequence[str],
        trust: ssl.SSLContext,
        clock: Callable[[], float] = time.time,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        address = _read_url(url)
        self._url, self._secrets, self._clock = address.copy_with(userinfo=b""), secrets, clock
        # Nothing of the environment: a proxy set for other programs would get the events.
        self._client = httpx.AsyncClient(
            auth=(address.username, address.password) if address.userinfo else None,
            verify=trust,
            timeout=TIMEOUT,
            trust_env=False,
            follow_redirects=False,
            headers={"User-Agent": f"segdec/{__version__}", "Content-Type": MEDIA_TYPE},
            transport=transport,
        )

    async def deliver(self, message: OutboxMessage) -> None:
        """Returns when the receiver has answered 2xx.

        Raises:
            DeliveryError: If it has not.
        """
        body = message.event.encode()
        headers = sign_webhook(self._secrets, message.event_id, int(self._clock()), body)
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                await _read(response)
        except httpx.HTTPError as error:
            raise DeliveryError(f"{type(error).__name__}: {error}", "unreachable") from error
        if not response.is_success:
            raise _explain(response, self._clock())

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()


async def _read(response: httpx.Response) -> None:
    size = 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            return


def _explain(response: httpx.Response, now: float) -> DeliveryError:
    status = response.status_code
    blame: Blame = "refused" if response.is_client_error else "failed"
    if status in NOT_NOW or response.is_redirect:
        blame = "unreachable"
    words = "a redirect, which is not followed" if response.is_redirect else response.reason_phrase
    asked_s = _read_seconds(response.headers.get("retry-after", ""), now)
    return DeliveryError(f"HTTP {status} {words}", blame, asked_s)


def _read_seconds(asked: str, now: float) -> float:
    """Reads a Retry-After: seconds, or the date of HTTP; 0 where it says neither."""
    if asked.isascii() and asked.isdecimal() and len(asked) < 10:
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - now)
    except (ValueError, OverflowError):
        return 0.0


def _read_url(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise ConfigError(  # without the address, which may hold a password
            "--outbox-webhook is no address of a receiver. Expected one as https://mes.plant/events."
        )
    return address


def read_secrets(file: Path) -> list[str]:
    """Reads the secrets of a file, one a line; empty lines and those with `#` first are skipped.

    Raises:
        ConfigError: If it cannot be read, has none, or one of another form.
    """
    try:
        lines = file.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the webhook's secrets in {file}: {error}.") from error
    secrets = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    if not secrets:
        raise ConfigError(f"{file} holds no secret. Expected a line whsec_BASE64.")
    for secret in secrets:
        read_secret(secret)
    return secrets
