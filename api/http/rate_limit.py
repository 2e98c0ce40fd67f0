"""Limits how many requests a client sends per second."""

import math
import time
from collections.abc import Callable

from api.errors import RequestError

MAX_CLIENTS = 100_000
"""Clients that are remembered; beyond it, the one that was idle longest is forgotten."""


class RateLimiter:
    """A token bucket for each client: `burst` tokens, refilled with `rate` tokens a second.

    A bucket is stored as the time at which it is full again, and removed after that. (The in-memory store of
    the package `limits` keeps an entry for each address and starts threads for cleaning.)
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._token_s = 1 / rate
        self._bucket_s = burst / rate
        self._clock = clock
        self._full_at: dict[str, float] = {}  # in the order of the last request

    def take_token(self, client: str) -> float:
        """Takes a token of `client`; returns 0 if there was one, otherwise the seconds until there is one."""
        now = self._clock()
        full_at = max(now, self._full_at.get(client, now)) + self._token_s
        wait_s = full_at - now - self._bucket_s
        if wait_s > 1e-9:
            return wait_s
        self._full_at.pop(client, None)
        self._full_at[client] = full_at
        self._remove_full(now)
        return 0.0

    def __len__(self) -> int:
        """Returns the number of clients that are remembered."""
        return len(self._full_at)

    def _remove_full(self, now: float) -> None:
        while self._full_at:
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= MAX_CLIENTS:
                return
            del self._full_at[oldest]


def take_token(limiter: RateLimiter, client: str) -> None:
    """Counts a request of `client`.

    Raises:
        RequestError: 429 above the limit.
    """
    wait_s = limiter.take_token(client)
    if wait_s:
        retry_after_s = math.ceil(wait_s)
        detail = f"Too many requests. Retry in {retry_after_s} s."
        raise RequestError(429, "rate_limit", detail, {"Retry-After": str(retry_after_s)})
