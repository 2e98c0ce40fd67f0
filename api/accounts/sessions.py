"""Sessions of users who are logged in: a random token in a cookie, its digest in the database."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, select, update

from api.accounts.tables import sessions, users
from api.roles import UserRole

IDLE_TIME = timedelta(hours=12)
"""After that time without an open page a person has to log in again."""
MAX_TIME = timedelta(days=7)
"""After that time a person has to log in again in any case."""
SCREEN_IDLE_TIME = timedelta(days=400)
"""A screen at the line has no keyboard; 400 days are the longest life of a cookie in a browser."""
ROTATION_TIME = timedelta(hours=1)
"""Age at which a token is replaced."""
TOKEN_OVERLAP = timedelta(seconds=60)
"""Time for which a replaced token is accepted: requests of other tabs may be on their way."""


@dataclass(frozen=True)
class Session:
    """A valid session.

    Attributes:
        has_provider: Whether the user is one of an OpenID Connect provider.
        csrf_token: Requests that change something must repeat it in a header, which other sites cannot.
    """

    user: str
    role: UserRole
    is_screen: bool
    has_provider: bool
    csrf_token: str
    logged_in_at: datetime
    token_at: datetime
    is_replaced: bool


@dataclass(frozen=True)
class NewToken:
    """The token of a session, for a cookie."""

    text: str
    expires_at: datetime


def digest_of(token: str) -> bytes:
    """Returns what is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def start_session(
    connection: Connection, user: str, *, is_screen: bool, now: datetime, max_time: timedelta = MAX_TIME
) -> NewToken:
    """Starts a session of a user, which ends after `max_time`, and removes those that have expired."""
    connection.execute(delete(sessions).where(sessions.c.expires_at <= now))
    csrf_token, max_end = secrets.token_urlsafe(32), now + max_time
    return _add_token(connection, user, is_screen, csrf_token, now, now, max_end)


def find_session(connection: Connection, token: str, now: datetime) -> Session | None:
    """Returns the session of a token; None if it is unknown or has expired.

    One of a person that would last longer than any was begun before the clock was set back.
    """
    columns = (
        sessions.c.user,
        users.c.role,
        users.c.is_screen,
        users.c.subject.is_not(None).label("has_provider"),
        sessions.c.csrf_token,
        sessions.c.logged_in_at,
        sessions.c.token_at,
        sessions.c.is_replaced,
    )
    valid = (sessions.c.token == digest_of(token)) & (sessions.c.expires_at > now)
    valid &= users.c.is_screen | (sessions.c.expires_at <= now + MAX_TIME)
    row = connection.execute(select(*columns).join_from(sessions, users).where(valid)).one_or_none()
    return None if row is None else Session(**row._asdict())


def needs_renewal(session: Session, now: datetime) -> bool:
    """Returns whether the token of a session is old and has not been replaced."""
    return not session.is_replaced and now - session.token_at >= ROTATION_TIME


def renew_session(
    connection: Connection, token: str, now: datetime, provider_time: timedelta
) -> NewToken | None:
    """Replaces the token of a session if it is old; None if it is not, or has been replaced already.

    The session of a user of an OpenID Connect provider ends `provider_time` after the log-in.
    """
    session = find_session(connection, token, now)
    if session is None or not needs_renewal(session, now):
        return None
    old = update(sessions).where(sessions.c.token == digest_of(token))
    connection.execute(old.values(is_replaced=True, expires_at=now + TOKEN_OVERLAP))
    begin = session.logged_in_at
    max_end = begin + (provider_time if session.has_provider else MAX_TIME)
    return _add_token(connection, session.user, session.is_screen, session.csrf_token, begin, now, max_end)


def end_session(connection: Connection, token: str) -> None:
    """Ends a session, with all its tokens."""
    csrf_token = select(sessions.c.csrf_token).where(sessions.c.token == digest_of(token)).scalar_subquery()
    connection.execute(delete(sessions).where(sessions.c.csrf_token == csrf_token))


def end_sessions(connection: Connection, user: str) -> None:
    """Ends all sessions of a user."""
    connection.execute(delete(sessions).where(sessions.c.user == user))


def _add_token(
    connection: Connection,
    user: str,
    is_screen: bool,
    csrf_token: str,
    logged_in_at: datetime,
    now: datetime,
    max_end: datetime,
) -> NewToken:
    expires_at = now + SCREEN_IDLE_TIME if is_screen else min(now + IDLE_TIME, max_end)
    token = secrets.token_urlsafe(32)
    row = {
        "token": digest_of(token),
        "user": user,
        "csrf_token": csrf_token,
        "logged_in_at": logged_in_at,
        "token_at": now,
        "expires_at": expires_at,
        "is_replaced": False,
    }
    connection.execute(insert(sessions), row)
    return NewToken(token, expires_at)
