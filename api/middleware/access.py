"""Notes each request when it is over: a count, a duration, a line in the log."""

import logging
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import RETRYABLE_STATUSES, problem_of
from api.metrics import UNMATCHED_ROUTE, Metrics
from api.middleware.keys import PUBLIC_PATHS, request_path
from segdec.schemas import BatchItem, Problem

CLIENT_GONE = 499
"""Status noted for a request whose client left before its answer began; it is never sent."""

PROBE_PATHS = ("/livez", "/readyz", "/metrics", "/v2/health/")
"""Asked every few seconds: in the log only if they fail."""

PHOTOGRAPH_PATHS = re.compile(r"/v1/(models/.+/)?(predict(/batch)?|inspect)|/v2/models/.+/infer")
"""Where photographs are sent; not the route's template, because a refusal may come before any route."""

logger = logging.getLogger(__name__)


def add_log_fields(request: Request, **facts: str | float) -> None:
    """Adds facts of an answer to the request's log line, for example `model`, `version`, `label`, `score`."""
    _facts_of(request.scope).update(facts)


def set_photograph_counts(request: Request, count: int, refused: Sequence[BatchItem] = ()) -> None:
    """Says how many photographs a request has, if not one, and which were refused while others were not."""
    request.scope.setdefault("state", {}).update(photographs=count, refused=refused)


class AccessMiddleware:
    """Counts each request in the metrics, and its photographs, and logs it as one line.

    Without `log`, only what fails has a line: no camera shall fail unseen. Left out of these are health
    checks, and photographs that the service has no time for now: they come by the thousand, and are counted.

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
        path = request_path(scope)  # now: a mounted app changes the scope
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
            self._count_problems(scope, path, status)
            if self._is_logged(path, status):
                _log("request", scope, path, status, _code_of(scope), duration_ms=round(duration_ms, 3))
            for item, problem in _refused(scope):
                if self._is_logged(path, problem.status):
                    _log("photograph", scope, path, problem.status, problem.code, photograph=item.name)

    def _count_problems(self, scope: Scope, path: str, status: int) -> None:
        state, refused = scope.setdefault("state", {}), list(_refused(scope))
        key, code = state.get("key") or "", _code_of(scope)
        if code is not None:
            self.metrics.count_problem(code, status, key)
        for _, problem in refused:
            self.metrics.count_problem(problem.code, problem.status, key)
            self.metrics.count_photographs(problem.status, key)
        if scope["method"] == "POST" and PHOTOGRAPH_PATHS.fullmatch(path):
            self.metrics.count_photographs(status, key, state.get("photographs", 1) - len(refused))

    def _is_logged(self, path: str, status: int) -> bool:
        if status < 400:
            return self.log and not path.startswith(PROBE_PATHS)
        passing = path.startswith(PROBE_PATHS) or (
            status in RETRYABLE_STATUSES and PHOTOGRAPH_PATHS.fullmatch(path)
        )
        return self.log or not passing


def route_of(scope: Scope, path: str) -> str:
    """Returns the template that took the request to `path`: one of a bounded number of words.

    Args:
        scope: The request, after it was answered.
        path: Its path as it came.
    """
    if path in PUBLIC_PATHS:
        return path
    if "app_root_path" in scope:  # a mounted app took it
        mount: str = scope["root_path"].removeprefix(scope["app_root_path"])
        return f"{mount}/{{path}}"
    template: str = getattr(scope.get("route"), "path", UNMATCHED_ROUTE)
    return template


def _code_of(scope: Scope) -> str | None:
    problem = problem_of(scope)
    return None if problem is None else problem.code


def _refused(scope: Scope) -> Iterator[tuple[BatchItem, Problem]]:
    """Yields the photographs of a batch that were refused while others were not, with the reason."""
    for item in scope.setdefault("state", {}).get("refused", ()):
        if item.problem is not None:
            yield item, item.problem


def caller_fields(scope: Scope) -> dict[str, str]:
    """Returns who sent a request, as fields of a log line: `request_id`, `client` and `key`, as far as known.

    The address is what a trusted proxy says it is, else that of the connection.
    """
    state, client = scope.get("state", {}), scope.get("client")
    known = {
        "request_id": state.get("request_id"),
        "client": client[0] if client else None,
        "key": state.get("key"),
    }
    return {name: fact for name, fact in known.items() if fact is not None}


def _log(event: str, scope: Scope, path: str, status: int, problem: str | None, **more: str | float) -> None:
    facts = {"method": scope["method"], "path": path, "status": status}
    if problem is not None:
        facts["problem"] = problem
    missed = status >= 400 and PHOTOGRAPH_PATHS.fullmatch(path)
    level = logging.WARNING if missed or status >= 500 else logging.INFO
    logger.log(level, event, extra={**caller_fields(scope), **facts, **more, **_facts_of(scope)})


def _facts_of(scope: Scope) -> dict[str, Any]:
    facts: dict[str, Any] = scope.setdefault("state", {}).setdefault("facts", {})
    return facts
