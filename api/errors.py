"""Every error is answered as problem+json, whoever raised it."""

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from segdec.errors import ImageError, SegdecError
from segdec.schemas import Problem

MAX_DETAIL = 2000
"""Longest description of an error, characters."""
MAX_INPUT = 80
"""Maximum length of client input that an error description quotes, characters."""
MAX_JSON_ERRORS = 3
MEDIA_TYPE = "application/problem+json"
ROUTING_DETAILS = {
    404: "Nothing is served at {path}. The paths are listed at /openapi.json.",
    405: "{method} is not accepted at {path}. Expected: {allowed}.",
}
RECORD_PATHS = ("/records/", "/review/", "/line/", "/outbox/", "/data-sets/", "/training/")
"""Prefixes, after `/v1` and `/admin`, of the paths that are served if a record is kept."""
RETRYABLE_STATUSES = {408, 429, 503, 504}
"""Statuses of requests that may succeed later."""
COUNTED_STATUSES = RETRYABLE_STATUSES | {401, 403}
"""Statuses of rejections, which are counted by their code."""


Values = Mapping[str, str | int | float]
"""Names and numbers in the text of an error."""


class RequestError(SegdecError):
    """A request that cannot be answered.

    Args:
        status: HTTP status.
        code: For programs, and for the text in other languages.
        text: In English; `{name}` is replaced by a value if there are values.
        headers: Additional headers of the answer.
        values: By their names in the texts of all languages.
    """

    def __init__(
        self,
        status: int,
        code: str,
        text: str,
        headers: Mapping[str, str] | None = None,
        /,
        **values: str | int | float,
    ) -> None:
        super().__init__(text.format(**values) if values else text)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})
        self.values = values


def service_unavailable(code: str, message: str, retry_after_s: int) -> RequestError:
    """Returns a 503 that says when to retry."""
    return RequestError(503, code, message, {"Retry-After": str(retry_after_s)})


# === Validation errors of pydantic ===


def bad_parameter(errors: Iterable[Mapping[str, Any]], place: str = "") -> RequestError:
    """Returns a 400 that names each invalid parameter, its value and what was expected.

    Args:
        errors: As `ValidationError.errors` returns them.
        place: Where the parameters were sent, for example `query`; empty if `loc` of each error starts with
            it.
    """
    sentences: dict[str, str] = {}  # only the first error of a parameter: a union has one for each member
    for error in errors:
        name = " ".join(map(str, [*filter(None, [place]), *error["loc"]][:2]))
        message = error["msg"].removeprefix("Value error, ").replace("Input should be", "Expected")
        message += "" if message.endswith((".", "?")) else "."
        if " " not in name or error["type"] == "missing":
            sentences.setdefault(name, f"{name}: {message}")
        else:
            sentences.setdefault(name, f"{name} is {repr(error['input'])[:MAX_INPUT]}. {message}")
    return RequestError(400, "bad_parameter", " ".join(sentences.values()))


def describe_json_errors(error: ValidationError, root: str = "body") -> str:
    """Returns the path and the message of the first errors in a JSON body, without its values."""
    details = error.errors(include_input=False, include_url=False, include_context=False)
    described = "; ".join(
        f"{'.'.join(str(part)[:40] for part in detail['loc']) or root}: {detail['msg']}"
        for detail in details[:MAX_JSON_ERRORS]
    )
    return described.replace("invalid unicode code point", "not UTF-8").replace("Value error, ", "")


# === Problems ===


def make_problem(
    request_id: str, status: int, code: str, detail: str, values: Values | None = None
) -> Problem:
    title = HTTPStatus(status).phrase
    if len(detail) > MAX_DETAIL:
        detail = f"{detail[:MAX_DETAIL]}…"
    known = dict(values or {})
    return Problem(title=title, status=status, detail=detail, code=code, values=known, request_id=request_id)


def values_of(error: RequestError | ImageError) -> Values:
    return error.values if isinstance(error, RequestError) else {}


def status_of(error: RequestError | ImageError) -> int:
    if isinstance(error, RequestError):
        return error.status
    return 413 if error.code == "too_many_pixels" else 422


class ProblemResponse(Response):
    """An error response; stores the problem in the request's state for logs and metrics."""

    def __init__(
        self,
        request_id: str,
        status: int,
        code: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        values: Values | None = None,
    ) -> None:
        self.problem = make_problem(request_id, status, code, detail, values)
        super().__init__(self.problem.model_dump_json(), status, headers, MEDIA_TYPE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["problem"] = self.problem
        if f"{scope['path']}/".startswith("/v2/"):  # clients of the protocol read the member `error`
            answer = {**self.problem.model_dump(), "error": self.problem.detail}
            self.body = json.dumps(answer, ensure_ascii=False).encode()
            self.headers["Content-Length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def problem_of(scope: Scope) -> Problem | None:
    """Returns the problem that a request was answered with; None for any other answer."""
    problem: Problem | None = scope.get("state", {}).get("problem")
    return problem


def document_problems(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Returns the OpenAPI responses of the problems that a route can answer with."""
    content = {MEDIA_TYPE: {"schema": Problem.model_json_schema()}}
    phrases: dict[int | str, str] = {"default": "Problem"}
    phrases |= {status: HTTPStatus(status).phrase for status in statuses}
    return {status: {"description": phrase, "content": content} for status, phrase in phrases.items()}


# === Handlers ===


def add_error_handlers(app: FastAPI) -> None:
    """Makes `app` answer every expected error as problem+json."""
    app.exception_handler(RequestError)(_answer_error)
    app.exception_handler(ImageError)(_answer_error)
    app.exception_handler(RequestValidationError)(_answer_validation_error)
    app.exception_handler(HTTPException)(_answer_routing_error)
    app.exception_handler(ClientDisconnect)(_answer_disconnected_client)


async def _answer_error(request: Request, error: RequestError | ImageError) -> Response:
    status, headers = status_of(error), None
    if isinstance(error, RequestError):
        headers = error.headers
        if status in COUNTED_STATUSES:
            request.app.state.metrics.count_rejection(error.code)
    values = values_of(error)
    return ProblemResponse(request.state.request_id, status, error.code, str(error), headers, values)


async def _answer_validation_error(request: Request, error: RequestValidationError) -> Response:
    return await _answer_error(request, bad_parameter(error.errors()))


async def _answer_routing_error(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404 and (page := _page_for_people(request)) is not None:
        return page
    access = getattr(request.app.state, "access", None)
    if access is not None and "app_root_path" not in request.scope:  # not below a folder of files
        try:
            await access.authorize("predict", request)
        except RequestError as refusal:
            return await _answer_error(request, refusal)
    headers = dict(error.headers or {})
    words = {"path": request.url.path, "method": request.method, "allowed": headers.get("Allow", "")}
    detail = ROUTING_DETAILS.get(error.status_code, str(error.detail)).format_map(words)
    if error.status_code == 404 and _needs_record(request):
        detail = f"{request.url.path} needs a record, and none is kept. Start with --record required."
    code = HTTPStatus(error.status_code).name.lower()
    return ProblemResponse(request.state.request_id, error.status_code, code, detail, headers)


def _page_for_people(request: Request) -> Response | None:
    """Returns a page in place of problem+json, for browsers that open an unknown address."""
    make_page = getattr(request.app.state, "not_found_page", None)  # other apps use these handlers too
    accepted = request.headers.get("accept", "")
    if make_page is None or request.method != "GET" or "text/html" not in accepted or "json" in accepted:
        return None
    page: Response = make_page(request)
    request.state.problem = make_problem(request.state.request_id, 404, "not_found", "The page is unknown.")
    return page


def _needs_record(request: Request) -> bool:
    """Returns whether the path would exist if the service kept a record."""
    path = request.url.path.removeprefix("/v1").removeprefix("/admin")
    settings = getattr(request.app.state, "settings", None)  # other apps use these handlers too
    return settings is not None and settings.record == "off" and f"{path}/".startswith(RECORD_PATHS)


async def _answer_disconnected_client(request: Request, error: ClientDisconnect) -> Response:  # noqa: ARG001
    request.app.state.metrics.count_rejection("client_gone")
    return ProblemResponse(
        request.state.request_id, 400, "client_gone", "The body ended before it was complete."
    )
