"""Logs users of the pages in and out. Served if the service records."""

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar, TypeVarTuple
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends
from pydantic import Field
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from api.accounts import log_in as log_in_steps
from api.accounts.access import COOKIE, AccessControl, check_csrf_token
from api.accounts.passwords import MAX_LENGTH, hash_password, is_password
from api.accounts.schemas import SessionState, SessionUser
from api.accounts.sessions import NewToken, Session, end_session, find_session, needs_renewal, renew_session
from api.accounts.users import normalise_name, set_password
from api.errors import RequestError, document_problems
from api.http.callers import client_of
from api.http.deadlines import deadline_error
from api.http.json_body import json_body
from api.http.rate_limit import take_token
from api.http.request_params import DeadlineDep, RequiredName
from api.http.roles import require_role
from api.http.sent_model import SentModel
from api.record.record import Record
from api.record.record_params import RecordDep
from api.roles import user_roles_of

router = APIRouter(prefix="/v1/session", tags=["session"], dependencies=require_role("anyone"))

Args = TypeVarTuple("Args")
T = TypeVar("T")
Password = Annotated[str, Field(max_length=MAX_LENGTH)]
PROBLEMS = document_problems(400, 401, 408, 413, 415, 422, 429, 503, 504)


class LogIn(SentModel):
    """Name and password of a user."""

    name: RequiredName
    password: Password


class LinkToken(SentModel):
    """The token of a link for a screen."""

    token: RequiredName


class NewPassword(SentModel):
    """A user's own new password."""

    password: Password = Field(description="the present one")
    new_password: Password


async def count_attempt(request: Request) -> None:
    """Counts an attempt to log in; raises a RequestError, 429, if there are too many."""
    take_token(request.app.state.log_in_attempts, client_of(request))


ATTEMPT = [Depends(count_attempt)]


@router.get("", responses=document_problems(503))
async def show_session(request: Request, response: Response, record: RecordDep) -> SessionState:
    """Who is logged in; an old token is replaced by a new one."""
    token = request.cookies.get(COOKIE)
    session = await record.read(find_session, token, _now()) if token else None
    if token and session is not None and needs_renewal(session, _now()):
        with suppress(RequestError):  # an outage: the present token stays valid
            hours = request.app.state.settings.openid_hours
            new = await record.write(renew_session, token, _now(), timedelta(hours=hours))
            if new is not None:
                set_session_cookie(request, response, new)
    return await _describe(request, session)


@router.post("", responses=PROBLEMS, dependencies=ATTEMPT)
async def log_in(
    sent: Annotated[LogIn, json_body(LogIn)],
    request: Request,
    response: Response,
    record: RecordDep,
    deadline: DeadlineDep,
) -> SessionState:
    """Logs a user in."""
    name = normalise_name(sent.name)
    stored = await _check_password(request, record, name, sent.password, deadline)
    return await _begin(
        request, response, record, await record.write(log_in_steps.log_in, name, stored, _now())
    )


@router.post("/link", responses=PROBLEMS, dependencies=ATTEMPT)
async def log_in_by_link(
    sent: Annotated[LinkToken, json_body(LinkToken)], request: Request, response: Response, record: RecordDep
) -> SessionState:
    """Logs a screen in with a link, which cannot be used again."""
    new = await record.write(log_in_steps.log_in_by_link, sent.token, _now())
    return await _begin(request, response, record, new)


@router.put("/password", responses={**PROBLEMS, **document_problems(403, 409)}, dependencies=ATTEMPT)
async def change_password(
    sent: Annotated[NewPassword, json_body(NewPassword)],
    request: Request,
    response: Response,
    record: RecordDep,
    deadline: DeadlineDep,
) -> SessionState:
    """Changes the password of the user who is logged in, and ends the user's other sessions."""
    session = await _require_session(request)
    name = session.user
    stored = await _check_password(request, record, name, sent.password, deadline)
    hashed = await run_hashing(request, deadline, hash_password, sent.new_password, name)

    def change(connection: Connection) -> NewToken:
        log_in_steps.log_in(connection, name, stored, _now())  # nobody has changed it meanwhile
        set_password(connection, name, hashed, name)
        return log_in_steps.log_in(connection, name, hashed, _now())

    return await _begin(request, response, record, await record.write(change))


@router.delete("", responses=document_problems(401, 403, 503))
async def log_out(request: Request, response: Response, record: RecordDep) -> SessionState:
    """Ends the session."""
    await _require_session(request)
    await record.write(end_session, request.cookies[COOKIE])
    response.delete_cookie(COOKIE, path=cookie_path(request))
    return await _describe(request, None)


async def run_hashing(request: Request, deadline: float, function: Callable[[*Args], T], *args: *Args) -> T:
    """Runs a function that computes a hash in a thread, a few at the same time.

    Raises:
        RequestError: 504 at the deadline (`time.perf_counter`).
    """
    try:
        async with asyncio.timeout(deadline - time.perf_counter()), request.app.state.hashing:
            return await asyncio.to_thread(function, *args)
    except TimeoutError:
        raise deadline_error() from None


async def _check_password(
    request: Request, record: Record, name: str, password: str, deadline: float
) -> str | None:
    """Checks a password; returns the hash with which it was compared.

    Raises:
        RequestError: 401 `log_in_failed`, 429 `log_in_locked`, 503 if too many passwords are checked, 504 at
            the deadline.
    """
    with request.app.state.log_in_queue:
        stored = await record.write(log_in_steps.begin_attempt, name, _now())
        if not await run_hashing(request, deadline, is_password, stored, password):
            raise log_in_steps.log_in_failed()
    return stored


async def _require_session(request: Request) -> Session:
    access: AccessControl = request.app.state.access
    session = await access.find_session(request)
    if session is None:
        raise RequestError(401, "not_logged_in", "Nobody is logged in here. Log in first.")
    check_csrf_token(session, request)
    return session


async def _begin(request: Request, response: Response, record: Record, new: NewToken) -> SessionState:
    set_session_cookie(request, response, new)
    return await _describe(request, await record.read(find_session, new.text, _now()))


async def _describe(request: Request, session: Session | None) -> SessionState:
    access: AccessControl = request.app.state.access
    has_users = await access.has_users()
    open_id = request.app.state.open_id is not None
    if session is None:
        local_role = await access.local_role(request)
        return SessionState(
            user=None,
            csrf_token=None,
            has_users=has_users,
            local_roles=user_roles_of(local_role) if local_role else (),
            open_id=open_id,
        )
    user = SessionUser(
        name=session.user, role=session.role, is_screen=session.is_screen, roles=user_roles_of(session.role)
    )
    return SessionState(
        user=user, csrf_token=session.csrf_token, has_users=True, local_roles=(), open_id=open_id
    )


def set_session_cookie(request: Request, response: Response, new: NewToken) -> None:
    """Sends the token of a session to the browser, whose clock may differ."""
    left = new.expires_at - _now()
    response.set_cookie(
        COOKIE,
        new.text,
        max_age=math.ceil(left.total_seconds()),
        path=cookie_path(request),
        secure=is_https(request),
        httponly=True,
        samesite="strict",
    )


def cookie_path(request: Request) -> str:
    """Returns the path below which the browser sends cookies: that of the setting `public_url`."""
    return urlsplit(request.app.state.settings.public_url or "").path or "/"


def is_https(request: Request) -> bool:
    """Returns whether people open the pages by https."""
    address = request.app.state.settings.public_url or str(request.url)
    return urlsplit(address).scheme == "https"


def _now() -> datetime:
    return datetime.now(UTC)
