"""How often each key, or each address without keys, may ask."""

import math
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import problem_response
from api.metrics import Metrics
from api.middleware.keys import request_path, role_for

MAX_CLIENTS = 100_000
"""Clients that are remembered at most; beyond, the one that was quiet longest is forgotten."""


class RateLimiter:
    """A token bucket for each client: `burst` tokens, refilled with `rate` a second.

    A bucket is kept as the one time at which it is full again, and forgotten after that. The in-memory
    store of the package `limits` would keep an entry for each address ever seen, and start threads to
    clean up.

    Args:
        rate: Requests a second, on average.
        burst: Requests that may come at once.
        clock: Seconds that never go back.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._token_s = 1 / rate
        self._bucket_s = burst / rate
        self._clock = clock
        self._full_at: dict[str, float] = {}  # in the order of the last request

    def take_token(self, client: str) -> float:
        """Takes a token of `client`.

        Returns:
            0 if there was one, otherwise the seconds until there will be.
        """
        now = self._clock()
        full_at = max(now, self._full_at.get(client, now)) + self._token_s
        wait_s = full_at - now - self._bucket_s
        if wait_s > 1e-9:
            return wait_s
        self._full_at.pop(client, None)
        self._full_at[client] = full_at
        self._forget(now)
        return 0.0

    def __len__(self) -> int:
        """Returns the number of clients that are remembered."""
        return len(self._full_at)

    def _forget(self, now: float) -> None:
        while self._full_at:
            quietest = next(iter(self._full_at))
            if self._full_at[quietest] > now and len(self._full_at) <= MAX_CLIENTS:
                return
            del self._full_at[quietest]


class RateLimitMiddleware:
    """Answers 429 to who asks too often; the open paths, health and metrics among them, are not limited."""

    def __init__(self, app: ASGIApp, limiter: RateLimiter, metrics: Metrics) -> None:
        self.app = app
        self.limiter = limiter
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or role_for(request_path(scope)) == "anyone":
            await self.app(scope, receive, send)
            return
        wait_s = self.limiter.take_token(_client_of(scope))
        if not wait_s:
            await self.app(scope, receive, send)
            return
        self.metrics.count_rejection("rate_limit")
        retry_after_s = math.ceil(wait_s)
        detail = f"Too many requests. Expected a pause; come back in {retry_after_s} s."
        headers = {"Retry-After": str(retry_after_s)}
        response = problem_response(scope["state"]["request_id"], 429, "rate_limit", detail, headers)
        await response(scope, receive, send)


def _client_of(scope: Scope) -> str:
    key = scope["state"].get("key")
    if key:
        return f"key {key}"
    address = scope.get("client")
    return f"address {address[0]}" if address else "address unknown"
