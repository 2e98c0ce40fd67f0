"""Logs users of the pages in and out. Served if the service records."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar, TypeVarTuple

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from api.accounts import log_in as log_in_steps
from api.accounts.access import COOKIE, AccessControl, check_csrf_token
from api.accounts.passwords import MAX_LENGTH, hash_password, is_password
from api.accounts.schemas import SessionState, UserIdentity
from api.accounts.sessions import NewToken, Session, end_session, find_session, renew_session
from api.accounts.users import normalise_name, set_password
from api.errors import RequestError, document_problems
from api.records.record import Record
from api.routes.body_schemas import describe_json_body
from api.routes.dependencies import ServiceDep
from api.routes.json_body import read_json_body
from api.routes.rate_limit import client_of, take_token
from api.routes.record_filters import RecordDep
from api.routes.request_params import DeadlineDep, RequiredName
from api.routes.roles import require_role

router = APIRouter(prefix="/v1/session", tags=["session"], dependencies=require_role("anyone"))

Args = TypeVarTuple("Args")
Body = TypeVar("Body", bound=BaseModel)
T = TypeVar("T")
Password = Annotated[str, Field(max_length=MAX_LENGTH)]
PROBLEMS = document_problems(400, 401, 408, 413, 415, 422, 429, 503, 504)


class LogIn(BaseModel):
    """Name and password of a user."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: RequiredName
    password: Password


class LinkToken(BaseModel):
    """The token of a link for a screen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: RequiredName


class NewPassword(BaseModel):
    """A user's own new password."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    password: Password = Field(description="the present one")
    new_password: Password


@router.get("", responses=document_problems(503))
async def show_session(request: Request, response: Response, record: RecordDep) -> SessionState:
    """Who is logged in; an old token is replaced by a new one."""
    token = request.cookies.get(COOKIE)
    if token:
        new = await record.write(renew_session, token, _now())
        if new is not None:
            set_session_cookie(request, response, new)
            token = new.text
    return await _describe(request, record, token)


@router.post("", responses=PROBLEMS, openapi_extra=describe_json_body(LogIn))
async def log_in(
    request: Request, response: Response, service: ServiceDep, record: RecordDep, deadline: DeadlineDep
) -> SessionState:
    """Logs a user in."""
    sent = await _read(request, service, LogIn, deadline)
    name = normalise_name(sent.name)
    await _check_password(request, record, name, sent.password)
    return await _begin(request, response, record, await record.write(log_in_steps.log_in, name, _now()))


@router.post("/link", responses=PROBLEMS, openapi_extra=describe_json_body(LinkToken))
async def log_in_by_link(
    request: Request, response: Response, service: ServiceDep, record: RecordDep, deadline: DeadlineDep
) -> SessionState:
    """Logs a screen in with a link, which cannot be used again."""
    sent = await _read(request, service, LinkToken, deadline)
    new = await record.write(log_in_steps.log_in_by_link, sent.token, _now())
    return await _begin(request, response, record, new)


@router.put(
    "/password",
    responses={**PROBLEMS, **document_problems(403, 409)},
    openapi_extra=describe_json_body(NewPassword),
)
async def change_password(
    request: Request, response: Response, service: ServiceDep, record: RecordDep, deadline: DeadlineDep
) -> SessionState:
    """Changes the password of the user who is logged in, and ends the user's other sessions."""
    session = await _require_session(request)
    sent = await _read(request, service, NewPassword, deadline)
    await _check_password(request, record, session.user, sent.password)
    hashed = await run_hashing(request, hash_password, sent.new_password, session.user)
    await record.write(set_password, session.user, hashed, session.user)
    return await _begin(
        request, response, record, await record.write(log_in_steps.log_in, session.user, _now())
    )


@router.delete("", responses=document_problems(401, 403, 503))
async def log_out(request: Request, response: Response, record: RecordDep) -> SessionState:
    """Ends the session."""
    await _require_session(request)
    await record.write(end_session, request.cookies[COOKIE])
    response.delete_cookie(COOKIE, path=cookie_path(request))
    return await _describe(request, record, None)


async def run_hashing(request: Request, function: Callable[[*Args], T], *args: *Args) -> T:
    """Runs a function that computes a hash in a thread, a few at the same time."""
    async with request.app.state.hashing:
        return await asyncio.to_thread(function, *args)


async def _read(request: Request, service: ServiceDep, form: type[Body], deadline: float) -> Body:
    take_token(request.app.state.log_in_attempts, client_of(request))
    return await read_json_body(request, service, form, deadline)


async def _check_password(request: Request, record: Record, name: str, password: str) -> None:
    """Checks a password, and counts a failure.

    Raises:
        RequestError: 401 `log_in_failed`, 429 `log_in_locked`.
    """
    stored = await record.read(log_in_steps.check_lock, name, _now())
    if await run_hashing(request, is_password, stored, password):
        return
    await record.write(log_in_steps.note_failure, name, _now())
    raise RequestError(401, "log_in_failed", "The name or the password is wrong.")


async def _require_session(request: Request) -> Session:
    access: AccessControl = request.app.state.access
    session = await access.find_session(request)
    if session is None:
        raise RequestError(401, "not_logged_in", "Nobody is logged in here. Log in first.")
    check_csrf_token(session, request)
    return session


async def _begin(request: Request, response: Response, record: Record, new: NewToken) -> SessionState:
    set_session_cookie(request, response, new)
    return await _describe(request, record, new.text)


async def _describe(request: Request, record: Record, token: str | None) -> SessionState:
    session = await record.read_during_outage(find_session, token, _now()) if token else None
    access: AccessControl = request.app.state.access
    has_users = await access.has_users()
    open_id = request.app.state.open_id is not None
    if session is None:
        return SessionState(user=None, csrf_token=None, has_users=has_users, open_id=open_id)
    user = UserIdentity(name=session.user, role=session.role, is_screen=session.is_screen)
    return SessionState(user=user, csrf_token=session.csrf_token, has_users=True, open_id=open_id)


def set_session_cookie(request: Request, response: Response, new: NewToken) -> None:
    """Sends the token of a session to the browser."""
    response.set_cookie(
        COOKIE,
        new.text,
        expires=new.expires_at,
        path=cookie_path(request),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def cookie_path(request: Request) -> str:
    """Returns the path below which the browser sends cookies: the prefix of a proxy."""
    prefix: str = request.scope.get("root_path", "")
    return prefix or "/"


def _now() -> datetime:
    return datetime.now(UTC)
