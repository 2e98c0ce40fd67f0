"""Whether a request to the service is sent again, and after how many seconds."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from segdec.client.replies import Reply, may_have_crashed, second_replica_lost

RETRIED_STATUSES = frozenset({429, 502, 503})
"""Temporary states. 504 is not retried: the deadline that the sender allowed has passed."""

RETRIED_ERRORS = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ConnectTimeout)
"""The connection failed or broke. Other timeouts are not retried: a slow service must not work twice."""

BACKOFF_S = 0.25
"""Shortest wait before the first retry if the service names none; it doubles with each retry."""


@dataclass(frozen=True)
class RetryPolicy:
    """Decides whether and when a request is sent again, at most `retries` times.

    A wait is at least what the service asks for; if that is more than `max_wait_s`, the request is not sent
    again. Waits double with each retry, plus random jitter of up to the same length: otherwise clients that
    were rejected together would return together and be rejected again.
    """

    retries: int = 3
    max_wait_s: float = 30.0
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"retries={self.retries}. Expected 0 or more.")

    def wait_s(self, replies: list[Reply]) -> float | None:
        """Returns the seconds to wait after these replies to one request; None if the last one is final."""
        attempt, reply = len(replies) - 1, replies[-1]
        if attempt >= self.retries or not is_transient(reply) or second_replica_lost(reply):
            return None
        asked_s = 0.0 if isinstance(reply, httpx.RequestError) else retry_after_s(reply) or 0.0
        if asked_s > self.max_wait_s or crashed_twice(replies):
            return None
        min_s = (asked_s or BACKOFF_S) * 2.0**attempt
        max_s = min(2 * min_s, self.max_wait_s)
        min_s = max(asked_s, min(min_s, max_s / 2))  # keeps some jitter at the limit
        return min_s + self.random() * (max_s - min_s)


NO_RETRY = RetryPolicy(retries=0)


def crashed_twice(replies: list[Reply]) -> bool:
    """Returns whether two replicas may have crashed on a photograph, which is then not sent again."""
    return sum(map(may_have_crashed, replies)) >= 2


def is_transient(reply: Reply) -> bool:
    """Returns whether the same request may succeed a little later."""
    if isinstance(reply, httpx.RequestError):
        return isinstance(reply, RETRIED_ERRORS)
    return reply.status_code in RETRIED_STATUSES


def retry_after_s(response: httpx.Response) -> float | None:
    """Reads Retry-After, s; a date counts from the response's `Date`. None if missing or unreadable."""
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
