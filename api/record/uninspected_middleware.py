"""Logs each photograph that was sent for inspection but not inspected, whichever part of the service rejected
it.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from api.errors import problem_of
from api.http.middleware.access import request_path
from api.http.middleware.http_middleware import HttpMiddleware, StatusSend
from api.record.uninspected_photograph import UninspectedPhotograph
from segdec.runtime.identifiers import FORBIDDEN

INSPECT_PATHS = re.compile(r"/v1/(models/[^/]+/)?inspect")
MAX_NAME_CHARACTERS, MAX_DETAIL_CHARACTERS = 128, 400
"""Maximum of what is stored of a station or a part, and of the detail of a problem."""
UNAUTHORIZED = (401, 403)
MAX_QUERY_FIELDS = 20
"""A query with more fields is not parsed."""


class UninspectedMiddleware(HttpMiddleware):
    """Reports to the service each photograph that was not inspected.

    Requests without a valid key are not logged: anyone could fill the screens of the line with them. A camera
    whose key is rejected appears on the line page as a silent station. Requests above the rate limit are
    logged.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST" or not INSPECT_PATHS.fullmatch(request_path(scope)):
            await self.app(scope, receive, send)
            return
        answer = StatusSend(send)
        try:
            await self.app(scope, receive, answer)
        except Exception:
            if not answer.status:
                _report(scope, 500, "internal_error", "The service failed. See its log.")
            raise
        except BaseException:  # cancelled: the service stops
            if not answer.status:
                _report(scope, 503, "draining", "The service stopped before the inspection.")
            raise
        if answer.status >= 400 and answer.status not in UNAUTHORIZED:
            problem = problem_of(scope)
            code, detail = ("unknown", "") if problem is None else (problem.code, problem.detail)
            _report(scope, answer.status, code, detail)


def set_part(scope: Scope, station: str, part_id: str | None) -> None:
    """Sets the part that a photograph shows, if the body names it."""
    scope["state"]["part"] = (station, part_id)


def _report(scope: Scope, status: int, code: str, detail: str) -> None:
    service: Any = scope["app"].state.service
    if service is None:
        return
    station, part_id = scope["state"].get("part") or _part_in_query(scope)
    photograph = UninspectedPhotograph(
        station=_clean(station, MAX_NAME_CHARACTERS),
        part_id=None if part_id is None else _clean(part_id, MAX_NAME_CHARACTERS),
        client=scope["state"].get("user") or scope["state"].get("key") or "",
        status=status,
        code=code,
        detail=_clean(detail, MAX_DETAIL_CHARACTERS),
    )
    service.recording.log_uninspected(photograph)


def _part_in_query(scope: Scope) -> tuple[str, str | None]:
    """Returns station and part of the query, also if the query was refused."""
    query: Mapping[str, list[str]] = {}
    with suppress(ValueError):  # too many fields
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS)
    parts = query.get("part_id")
    return query.get("station", [""])[0], parts[0] if parts else None


def _clean(text: str, max_characters: int) -> str:
    """Returns text that any database accepts; valid names do not change."""
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text[:max_characters])
