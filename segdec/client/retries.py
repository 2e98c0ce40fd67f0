"""Whether a request to the service is sent again, and after how long."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from segdec.client.replies import RESEND, Reply, is_last_loss, is_loss
from segdec.errors import MissingExtraError

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("httpx", "client") from error

RETRIED_STATUSES = frozenset({429, 502, 503})
"""Too many requests, a proxy without its service, queue full or not ready: passing states. A 504 is none:
the time that the sender allowed is over."""

RETRIED_ERRORS = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ConnectTimeout)
"""The connection failed or broke. Other timeouts are none: a slow service must not get the work twice."""

BACKOFF_S = 0.5
"""Longest wait before the first retry if the service names none, or no time; it doubles with each retry."""


@dataclass(frozen=True)
class RetryPolicy:
    """Decides whether and when a request is sent again.

    What the service asks for is the least wait. It doubles with each retry, and is stretched at random up to
    twice as long: clients that were refused together would otherwise come back together, and those beyond
    the places that are free then would be refused each time until their attempts are used up.

    Attributes:
        retries: Most attempts after the first.
        max_wait_s: Longest wait; if the service asks for a longer one, the request is not sent again.
        draw: Random numbers from 0 to 1.
    """

    retries: int = 3
    max_wait_s: float = 30.0
    draw: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"retries={self.retries}. Expected 0 or more.")

    def wait_s(self, attempt: int, reply: Reply) -> float | None:
        """Returns the seconds to wait after attempt `attempt`, counted from 0; None if `reply` is final."""
        if attempt >= self.retries or not is_transient(reply):
            return None
        asked_s = 0.0 if isinstance(reply, httpx.RequestError) else retry_after_s(reply) or 0.0
        if asked_s > self.max_wait_s:
            return None
        least_s = (asked_s or BACKOFF_S / 2) * 2.0**attempt
        longest_s = min(2 * least_s, self.max_wait_s)
        # At the limit too some stretch is left, but never less than what was asked for.
        least_s = max(asked_s, min(least_s, longest_s / 2))
        return least_s + self.draw() * (longest_s - least_s)


NO_RETRY = RetryPolicy(retries=0)


class Attempts:
    """Counts the attempts at one request, and marks it once who took it may have died of it.

    Args:
        policy: Says whether and when there is another one.
        request: That is sent each time.
    """

    def __init__(self, policy: RetryPolicy, request: httpx.Request) -> None:
        self._policy = policy
        self._request = request
        self._made = 0

    def wait_s(self, reply: Reply) -> float | None:
        """Returns the seconds to wait after `reply` before the next attempt; None if it is final."""
        wait_s = self._policy.wait_s(self._made, reply)
        if wait_s is None or is_last_loss(reply):
            return None
        if is_loss(reply):
            self._request.headers[RESEND] = "1"
        self._made += 1
        return wait_s


def is_transient(reply: Reply) -> bool:
    """Returns whether the same request may succeed a little later."""
    if isinstance(reply, httpx.RequestError):
        return isinstance(reply, RETRIED_ERRORS)
    return reply.status_code in RETRIED_STATUSES


def retry_after_s(response: httpx.Response) -> float | None:
    """Reads what the header Retry-After asks for, in seconds; None if it is missing or unreadable.

    A date is compared with the service's own clock where its answer shows one.
    """
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    moment = _read_date(value)
    if moment is None:
        return None
    now = _read_date(response.headers.get("Date", "")) or datetime.now(UTC)
    return max((moment - now).total_seconds(), 0.0)


def _read_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
