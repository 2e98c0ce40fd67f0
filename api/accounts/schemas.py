"""JSON answers about users and sessions."""

from datetime import datetime

from pydantic import Field

from api.roles import USER_ROLES, UserRole
from segdec.schemas import AnswerPart


class UserIdentity(AnswerPart):
    """A user."""

    name: str
    role: UserRole
    is_screen: bool = Field(description="a screen at the line, which logs in with a link and stays logged in")


class SessionUser(UserIdentity):
    """A user who is logged in."""

    roles: tuple[UserRole, ...] = Field(description="the role and those that it includes")


class UserDetail(UserIdentity):
    """A user in the list."""

    created_at: datetime


class UserList(AnswerPart):
    """Users, by name."""

    users: list[UserDetail]
    next_after: str | None = Field(description="`after` of the next page; null: this is the last one")
    roles: tuple[UserRole, ...] = Field(USER_ROLES, description="all roles, the lowest first")


class SessionState(AnswerPart):
    """Who is logged in."""

    user: SessionUser | None = Field(description="null: nobody")
    csrf_token: str | None = Field(description="value of the header X-CSRF-Token of requests by this user")
    has_users: bool = Field(description="whether there is anybody who can log in")
    local_roles: tuple[UserRole, ...] = Field(description="of everybody on this machine, without a log-in")
    open_id: bool = Field(description="whether people log in at an OpenID Connect provider")


class LogInLink(AnswerPart):
    """A link with which a screen logs in once."""

    path: str = Field(description="relative to the address of the pages")
    expires_at: datetime
