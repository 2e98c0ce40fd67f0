"""Logging in with name and password, or with a link; repeated failures lock a name for some time."""

import math
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select, update

from api.accounts.sessions import NewToken, digest_of, start_session
from api.accounts.tables import failed_log_ins, log_in_links, users
from api.accounts.users import LINK_TIME, find_user
from api.errors import RequestError
from api.record.queries import add_audit_entry

MAX_FAILURES = 5
"""Failures in a row after which a name is locked."""
FIRST_LOCK_S = 30
MAX_LOCK_S = 900
"""Each further failure doubles the time up to this one, so that nobody is locked out for long by others."""
MAX_FAILURE_AGE = timedelta(days=1)
"""Time after which failures are forgotten."""
MAX_NAMES = 10_000
"""Names whose failures are remembered."""


def begin_attempt(connection: Connection, name: str, now: datetime) -> str | None:
    """Counts an attempt as failed until `log_in` succeeds; returns the hash of the password of `name`, None
    without one.

    It is counted first, so that attempts at the same time are limited too.

    Raises:
        RequestError: 429 `log_in_locked`; then it does not count.
    """
    # Later ones are from before the clock was set back: they would lock the name until then.
    is_recent = failed_log_ins.c.last_at.between(now - MAX_FAILURE_AGE, now + timedelta(seconds=MAX_LOCK_S))
    connection.execute(delete(failed_log_ins).where(~is_recent))
    known = failed_log_ins.c.name == name
    row = connection.execute(select(failed_log_ins).where(known)).mappings().one_or_none()
    count = 0 if row is None else row["count"]
    if row is not None and count >= MAX_FAILURES:
        _check_lock(count, (now - row["last_at"]).total_seconds())
    if row is None:
        _remove_oldest(connection)
        connection.execute(insert(failed_log_ins), {"name": name, "count": 1, "last_at": now})
    else:
        connection.execute(update(failed_log_ins).where(known).values(count=count + 1, last_at=now))
    user = connection.execute(select(users.c.password).where(users.c.name == name)).one_or_none()
    if count + 1 == MAX_FAILURES and user is not None:
        facts = {"name": name, "failures": MAX_FAILURES}
        add_audit_entry(connection, "service", "lock the log-in", after=facts)
    password: str | None = None if user is None else user.password
    return password


def _check_lock(count: int, since_s: float) -> None:
    lock_s = min(FIRST_LOCK_S * 2 ** min(count - MAX_FAILURES, 10), MAX_LOCK_S)
    left_s = math.ceil(lock_s - since_s)
    if left_s > 0:
        detail = f"Too many failed attempts for this name. Try again in {left_s} s."
        raise RequestError(429, "log_in_locked", detail, {"Retry-After": str(left_s)})


def _remove_oldest(connection: Connection) -> None:
    """Keeps the table small, whatever names are tried."""
    if connection.execute(select(func.count()).select_from(failed_log_ins)).scalar_one() >= MAX_NAMES:
        oldest = select(failed_log_ins.c.name).order_by(failed_log_ins.c.last_at).limit(MAX_NAMES // 10)
        connection.execute(delete(failed_log_ins).where(failed_log_ins.c.name.in_(oldest)))


def log_in(connection: Connection, name: str, password: str | None, now: datetime) -> NewToken:
    """Starts a session of a user whose password was right; `password` is the hash that it was compared with.

    Raises:
        RequestError: 401 `log_in_failed` if the user was removed or has another password since.
    """
    user = (users.c.name == name) & (users.c.password == password)
    if connection.execute(select(users.c.name).where(user)).first() is None:
        raise log_in_failed()
    connection.execute(delete(failed_log_ins).where(failed_log_ins.c.name == name))
    add_audit_entry(connection, name, "log in")
    return start_session(connection, name, is_screen=False, now=now)


def log_in_failed() -> RequestError:
    """Returns the error of a log-in, which does not tell whether the name is known."""
    return RequestError(401, "log_in_failed", "The name or the password is wrong.")


def log_in_by_link(connection: Connection, token: str, now: datetime) -> NewToken:
    """Starts a session of the screen that a link is for; the link cannot be used again.

    Raises:
        RequestError: 401 `link_not_valid`.
    """
    until = now + 2 * LINK_TIME  # a later one is from before the clock was set back
    is_valid = (log_in_links.c.token == digest_of(token)) & (log_in_links.c.expires_at > now)
    is_valid &= log_in_links.c.expires_at <= until
    name = connection.execute(delete(log_in_links).where(is_valid).returning(log_in_links.c.user)).scalar()
    if name is None:
        detail = (
            "This link was used before, has expired, or is incomplete. Ask an administrator for a new one."
        )
        raise RequestError(401, "link_not_valid", detail)
    add_audit_entry(connection, name, "log in")
    return start_session(connection, name, is_screen=find_user(connection, name)["is_screen"], now=now)
