"""Notes each photograph that came to be inspected and was not, whoever refused it."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import problem_of
from api.middleware.access import request_path
from api.records.line.uninspected_photograph import UninspectedPhotograph

INSPECT_PATHS = re.compile(r"/v1/(models/[^/]+/)?inspect")
MAX_NAME_CHARACTERS, MAX_DETAIL_CHARACTERS = 128, 400
"""Letters that are noted of a station or a part, and of what was wrong."""
UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Letters that no station and no part may have."""
UNAUTHORIZED = (401, 403)
MAX_QUERY_FIELDS = 20
"""Of a query: one with more is not read."""


class UninspectedMiddleware:
    """Tells the service of each photograph that it did not inspect.

    Requests without a valid key are not logged: anyone could fill the screens of the line with them. A camera
    whose key is rejected becomes silent there instead. Requests above the rate limit are logged.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if not _brings_photograph(scope):
            await self.app(scope, receive, send)
            return
        status = 0

        async def send_and_see(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_see)
        except Exception:
            if not status:
                _note(scope, 500, "internal_error", "The service failed. Its log tells more.")
            raise
        except BaseException:  # cancelled: the service stops
            if not status:
                _note(scope, 503, "draining", "The service stopped before this was inspected.")
            raise
        if status >= 400 and status not in UNAUTHORIZED:
            problem = problem_of(scope)
            code, detail = ("unknown", "") if problem is None else (problem.code, problem.detail)
            _note(scope, status, code, detail)


def _brings_photograph(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "POST":
        return False
    return INSPECT_PATHS.fullmatch(request_path(scope)) is not None


def set_part(scope: Scope, station: str, part_id: str | None) -> None:
    """Says which part a photograph shows, where its body told."""
    scope["state"]["part"] = (station, part_id)


def _note(scope: Scope, status: int, code: str, detail: str) -> None:
    service: Any = scope["app"].state.service
    if service is None:
        return
    station, part_id = scope["state"].get("part") or _asked(scope)
    miss = UninspectedPhotograph(
        station=_clean(station, MAX_NAME_CHARACTERS),
        part_id=None if part_id is None else _clean(part_id, MAX_NAME_CHARACTERS),
        client=scope["state"].get("key") or "",
        status=status,
        code=code,
        detail=_clean(detail, MAX_DETAIL_CHARACTERS),
    )
    service.recording.log_uninspected(miss)


def _asked(scope: Scope) -> tuple[str, str | None]:
    """Returns station and part of the query, also of one that was refused."""
    query: Mapping[str, list[str]] = {}
    with suppress(ValueError):  # too many fields
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS)
    parts = query.get("part_id")
    return query.get("station", [""])[0], parts[0] if parts else None


def _clean(text: str, most: int) -> str:
    """Returns what any database takes of a text: a name that an inspection may have stays as it is."""
    return UNFIT.sub("\N{REPLACEMENT CHARACTER}", text[:most])
