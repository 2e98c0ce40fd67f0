"""Lists, adds, changes and removes users of the pages. Served if the service records."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Query
from pydantic import Field
from sqlalchemy import Connection
from starlette.requests import Request

from api.accounts import users
from api.accounts.passwords import hash_password
from api.accounts.schemas import LogInLink, UserDetail, UserList
from api.accounts.session_routes import Password, run_hashing
from api.errors import document_problems
from api.http.callers import caller_of
from api.http.json_body import json_body
from api.http.number_text import MAX_PAGE_SIZE, WHOLE_NUMBER
from api.http.request_params import DeadlineDep, Name, RequiredName
from api.http.roles import require_role
from api.http.sent_model import SentModel
from api.record.record import Record
from api.record.record_params import RecordDep
from api.roles import UserRole

router = APIRouter(prefix="/v1/users", tags=["users"], dependencies=require_role("administrator"))
T = TypeVar("T")
UserName = Annotated[RequiredName, Path()]
PROBLEMS = document_problems(400, 404, 408, 409, 413, 415, 422, 503, 504)


class NewUser(SentModel):
    """A user to add."""

    name: RequiredName
    role: UserRole
    password: Password | None = Field(description="null: a screen, which logs in with a link")


class UserChange(SentModel):
    """What to change of a user; null: nothing."""

    role: UserRole | None = None
    password: Password | None = None


@router.get("", responses=document_problems(400, 503))
async def list_users(
    record: RecordDep,
    after: Annotated[Name, Query(description="only names after it")] = "",
    limit: Annotated[int, WHOLE_NUMBER, Query(gt=0, le=MAX_PAGE_SIZE)] = MAX_PAGE_SIZE,
) -> UserList:
    """Users, by name; pass `next_after` to get the next page."""
    return await _list(record, after, limit)


@router.post("", responses=PROBLEMS)
async def add_user(
    sent: Annotated[NewUser, json_body(NewUser)], request: Request, record: RecordDep, deadline: DeadlineDep
) -> UserList:
    """Adds a user; the answer is the first page of users."""
    name = users.normalise_name(sent.name)
    password = await _hash(request, sent.password, name, deadline)
    add = partial(
        users.add_user,
        name=name,
        role=sent.role,
        password=password,
        is_screen=password is None,
        who=caller_of(request),
        now=datetime.now(UTC),
    )
    await _write(request, record, add)
    request.app.state.access.forget_users()
    return await _list(record)


@router.put("/{name}", responses=PROBLEMS)
async def change_user(
    sent: Annotated[UserChange, json_body(UserChange)],
    name: UserName,
    request: Request,
    record: RecordDep,
    deadline: DeadlineDep,
) -> UserList:
    """Changes the role or the password of a user; a new password ends the user's sessions. The answer is the
    first page of users.
    """
    password = await _hash(request, sent.password, name, deadline)

    def change(connection: Connection) -> None:
        users.find_user(connection, name)
        if sent.role is not None:
            users.change_role(connection, name, sent.role, caller_of(request))
        if password is not None:
            users.set_password(connection, name, password, caller_of(request))

    await _write(request, record, change)
    return await _list(record)


@router.delete("/{name}", responses=document_problems(404, 409, 503))
async def remove_user(name: UserName, request: Request, record: RecordDep) -> UserList:
    """Removes a user, which ends the user's sessions; the answer is the first page of users."""
    await _write(request, record, partial(users.remove_user, name=name, who=caller_of(request)))
    request.app.state.access.forget_users()
    return await _list(record)


@router.post("/{name}/link", responses=document_problems(404, 409, 503))
async def make_link(name: UserName, request: Request, record: RecordDep) -> LogInLink:
    """Makes a link with which a screen logs in, once."""
    make = partial(users.make_link, name=name, who=caller_of(request), now=datetime.now(UTC))
    token, expires_at = await _write(request, record, make)
    return LogInLink(path=users.link_path(token), expires_at=expires_at)


async def _write(request: Request, record: Record, change: Callable[[Connection], T]) -> T:
    """Makes a change if the user who asks for it is still an administrator."""

    def make(connection: Connection) -> T:
        users.check_still_administrator(connection, request.state.user)
        return change(connection)

    return await record.write(make)


async def _hash(request: Request, password: str | None, name: str, deadline: float) -> str | None:
    return None if password is None else await run_hashing(request, deadline, hash_password, password, name)


async def _list(record: Record, after: str = "", limit: int = MAX_PAGE_SIZE) -> UserList:
    rows = await record.read(users.list_users, after, limit + 1)
    shown = [UserDetail(**row) for row in rows[:limit]]
    return UserList(users=shown, next_after=shown[-1].name if len(rows) > limit else None)
