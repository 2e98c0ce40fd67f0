"""Counts each request when it ends, with its duration, and logs it."""

import logging
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import RETRYABLE_STATUSES, problem_of
from api.http.middleware.http_middleware import HttpMiddleware, StatusSend
from api.metrics import UNMATCHED_ROUTE, Metrics
from segdec.schemas import Problem

CLIENT_GONE = 499
"""Status logged for a request whose client left before its answer began; it is never sent."""

PROBE_PATHS = ("/livez", "/readyz", "/metrics", "/v2/health/")
"""Requested every few seconds: logged only if they fail."""

PHOTOGRAPH_PATHS = re.compile(r"/v1/(models/.+/)?(predict(/batch)?|inspect)|/v2/models/.+/infer")
"""Paths that receive photographs; the path, because a request can be rejected before it has a route."""

logger = logging.getLogger(__name__)


def add_log_fields(request: Request, **fields: str | float) -> None:
    """Adds fields to the request's log line, for example `model`, `version`, `label`, `score`."""
    _log_fields(request.scope).update(fields)


def set_photograph_counts(request: Request, count: int, refused: Sequence[tuple[str, Problem]] = ()) -> None:
    """Sets the number of photographs of a request (default 1), and name and problem of those rejected."""
    request.scope.setdefault("state", {}).update(photographs=count, refused=refused)


class AccessMiddleware(HttpMiddleware):
    """Counts each request and its photographs in the metrics, and logs it as one line.

    Without `log`, only failures are logged, except health checks and temporary rejections: there may be
    thousands, and the metrics count them. It sees the final status: after it an answer only gets headers.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, log: bool) -> None:
        super().__init__(app)
        self.metrics = metrics
        self.log = log

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        path = request_path(scope)  # before a mounted app changes the scope
        answer = StatusSend(send)
        try:
            await self.app(scope, receive, answer)
        finally:
            status = answer.status or CLIENT_GONE
            duration_ms = (time.perf_counter() - started) * 1000
            self.metrics.count_request(scope["method"], _route_of(scope, path), status, duration_ms)
            self._count_problems(scope, path, status)
            if self._is_logged(path, status):
                _log("request", scope, path, status, _code_of(scope), duration_ms=round(duration_ms, 3))
            for name, problem in scope["state"].get("refused", ()):
                if self._is_logged(path, problem.status):
                    _log("photograph", scope, path, problem.status, problem.code, photograph=name)

    def _count_problems(self, scope: Scope, path: str, status: int) -> None:
        state = scope.setdefault("state", {})
        refused = state.get("refused", ())
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
        retryable = status in RETRYABLE_STATUSES and PHOTOGRAPH_PATHS.fullmatch(path)
        return self.log or not (retryable or path.startswith(PROBE_PATHS))


def request_path(scope: Scope) -> str:
    """Returns the path of a request without the prefix that a proxy may have added."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def _route_of(scope: Scope, path: str) -> str:
    """Returns the path template of an answered request: one of a bounded number of values."""
    if "app_root_path" in scope:  # a folder of files
        mount: str = scope["root_path"].removeprefix(scope["app_root_path"])
        return f"{mount}/{{path}}"
    if "route" in scope:
        template: str = scope["route"].path
        return template
    return path if "endpoint" in scope else UNMATCHED_ROUTE  # a page, whose path has no parameters


def _code_of(scope: Scope) -> str | None:
    problem = problem_of(scope)
    return None if problem is None else problem.code


def caller_fields(scope: Scope) -> dict[str, str]:
    """Returns the log fields `request_id`, `client` (from a trusted proxy, else the connection), `key` and
    `user` of a request, if known.
    """
    state, client = scope.get("state", {}), scope.get("client")
    known = {
        "request_id": state.get("request_id"),
        "client": client[0] if client else None,
        "key": state.get("key"),
        "user": state.get("user"),
    }
    return {name: value for name, value in known.items() if value is not None}


def caller_name(fields: Mapping[str, str]) -> str:
    """Returns who made a request, from `caller_fields`: the user, else the key; empty if unknown."""
    return fields.get("user") or fields.get("key", "")


def _log(event: str, scope: Scope, path: str, status: int, problem: str | None, **more: str | float) -> None:
    fields = {"method": scope["method"], "path": path, "status": status}
    if problem is not None:
        fields["problem"] = problem
    uninspected = status >= 400 and PHOTOGRAPH_PATHS.fullmatch(path)
    level = logging.WARNING if uninspected or status >= 500 else logging.INFO
    logger.log(level, event, extra={**caller_fields(scope), **fields, **more, **_log_fields(scope)})


def _log_fields(scope: Scope) -> dict[str, Any]:
    fields: dict[str, Any] = scope.setdefault("state", {}).setdefault("log_fields", {})
    return fields
