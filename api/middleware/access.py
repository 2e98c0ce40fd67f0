"""Notes each request when it is over: a count, a duration, a line in the log."""

import logging
import time
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.middleware.keys import OPEN_PATHS, path_of
from api.middleware.metrics import UNMATCHED, Metrics

CLIENT_GONE = 499
"""Status noted for a request whose client left before its answer began; it is never sent."""

QUIET_PATHS = ("/livez", "/readyz", "/metrics", "/v2/health/")
"""Asked every few seconds: in the log only if they fail."""

logger = logging.getLogger(__name__)


def note(request: Request, **facts: str | float) -> None:
    """Adds facts of an answer to the request's log line, for example `model`, `version`, `label`, `score`."""
    _facts_of(request.scope).update(facts)


class AccessMiddleware:
    """Counts each request in the metrics and, if asked to, logs it as one line.

    It has to stand around all that may change a status, so that it sees what is answered.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, log: bool) -> None:
        self.app = app
        self.metrics = metrics
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = time.perf_counter()
        path = path_of(scope)  # now: a mounted app changes the scope
        status = CLIENT_GONE

        async def send_and_see(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_see)
        finally:
            duration_ms = (time.perf_counter() - begun) * 1000
            self.metrics.count_request(scope["method"], route_of(scope, path), status, duration_ms)
            if self.log and (status >= 400 or not path.startswith(QUIET_PATHS)):
                _log(scope, path, status, duration_ms)


def route_of(scope: Scope, path: str) -> str:
    """Returns the template that took the request to `path`: one of a bounded number of words.

    Args:
        scope: The request, after it was answered.
        path: Its path as it came.
    """
    if path in OPEN_PATHS:
        return path
    if "app_root_path" in scope:  # a mounted app took it
        mount: str = scope["root_path"].removeprefix(scope["app_root_path"])
        return f"{mount}/{{path}}"
    template: str = getattr(scope.get("route"), "path", UNMATCHED)
    return template


def _log(scope: Scope, path: str, status: int, duration_ms: float) -> None:
    state = scope.get("state", {})
    facts = {
        "request_id": state.get("request_id"),
        "method": scope["method"],
        "path": path,
        "status": status,
        "duration_ms": round(duration_ms, 3),
        "key": state.get("key"),
        **_facts_of(scope),
    }
    level = logging.WARNING if status >= 500 else logging.INFO
    logger.log(level, "request", extra={name: fact for name, fact in facts.items() if fact is not None})


def _facts_of(scope: Scope) -> dict[str, Any]:
    facts: dict[str, Any] = scope.setdefault("state", {}).setdefault("facts", {})
    return facts
