"""Logs users in at an OpenID Connect provider. Served if one is set."""

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.accounts.open_id import OpenIdProvider, log_in_identity
from api.accounts.session_routes import cookie_path, is_https, set_session_cookie
from api.errors import document_problems
from api.http.callers import client_of
from api.http.page_list import LABEL, RECORD_PAGES
from api.http.rate_limit import take_token
from api.http.roles import require_role
from api.record.record_params import RecordDep

STATE_COOKIE = "segdec_openid"
STATE_TIME_S = 600
"""Seconds in which a person has to log in at the provider."""
MAX_TEXT = 4096
PAGES = [page.path.removeprefix("/") for page in (*RECORD_PAGES, LABEL)]
PAGE = re.compile(
    rf"(parts/\d{{1,19}}|{'|'.join(map(re.escape, PAGES))})(\?[\w.~%&=+*:,-]{{0,1000}})?", re.ASCII
)
"""A page of this service with its query."""

router = APIRouter(prefix="/v1/session/openid", tags=["session"], dependencies=require_role("anyone"))
ProviderText = Annotated[str, Query(max_length=MAX_TEXT)]


@router.get("", status_code=303, response_class=Response, responses=document_problems(400, 429, 503))
async def begin(request: Request, page: ProviderText = "") -> Response:
    """Sends the browser to the provider; afterwards it returns to a page of this service."""
    take_token(request.app.state.log_in_attempts, client_of(request))
    url, kept = await _provider(request).begin()
    answer = RedirectResponse(url, status_code=303)
    answer.set_cookie(
        STATE_COOKIE,
        _pack(_checked(page), kept),
        max_age=STATE_TIME_S,
        path=cookie_path(request),
        secure=is_https(request),
        httponly=True,
        samesite="lax",  # the provider's redirect comes from another site
    )
    return answer


@router.get(
    "/callback",
    status_code=303,
    response_class=Response,
    responses=document_problems(400, 401, 403, 409, 422, 429, 503),
)
async def finish(
    request: Request,
    record: RecordDep,
    state: ProviderText = "",
    code: ProviderText = "",
    error: Annotated[str, Query(max_length=MAX_TEXT, description="of the provider")] = "",  # noqa: ARG001
) -> Response:
    """Logs in the user whom the provider sends back."""
    take_token(request.app.state.log_in_attempts, client_of(request))
    page, kept = _unpack(request.cookies.get(STATE_COOKIE, ""))
    provider = _provider(request)
    identity = await provider.finish(kept, state, code)
    new = await record.write(log_in_identity, identity, datetime.now(UTC), provider.session_time)
    answer = RedirectResponse(f"{request.app.state.settings.public_url}/{page}", status_code=303)
    set_session_cookie(request, answer, new)
    answer.delete_cookie(STATE_COOKIE, path=cookie_path(request))
    return answer


def _provider(request: Request) -> OpenIdProvider:
    provider: OpenIdProvider = request.app.state.open_id
    return provider


def _pack(page: str, kept: str) -> str:
    return base64.urlsafe_b64encode(f"{page} {kept}".encode()).decode("ascii")


def _unpack(cookie: str) -> tuple[str, str]:
    try:
        text = base64.urlsafe_b64decode(cookie.encode("latin-1", "replace")).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    page, _, kept = text.partition(" ")
    return _checked(page), kept


def _checked(page: str) -> str:
    """Returns the page if this service has it, else the first one: nobody may send users elsewhere."""
    return page if PAGE.fullmatch(page) else ""
