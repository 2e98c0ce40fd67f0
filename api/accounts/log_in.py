"""Logging in with name and password, or with a link; repeated failures lock a name for some time."""

import math
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, select, update

from api.accounts.sessions import NewToken, digest_of, start_session
from api.accounts.users import find_user
from api.errors import RequestError
from api.records.queries import add_audit_entry
from api.records.tables import failed_log_ins, log_in_links, users

MAX_FAILURES = 5
"""Failures in a row after which a name is locked."""
FIRST_LOCK_S = 30
MAX_LOCK_S = 900
"""Each further failure doubles the time up to this one, so that nobody is locked out for long by others."""
MEMORY = timedelta(days=1)
"""Time after which failures are forgotten."""


def check_lock(connection: Connection, name: str, now: datetime) -> str | None:
    """Returns the hash of the password of `name`, None without one, unless the name is locked.

    Raises:
        RequestError: 429 `log_in_locked`.
    """
    row = (
        connection.execute(select(failed_log_ins).where(failed_log_ins.c.name == name))
        .mappings()
        .one_or_none()
    )
    if row is not None and row["count"] >= MAX_FAILURES:
        lock_s = min(FIRST_LOCK_S * 2 ** min(row["count"] - MAX_FAILURES, 10), MAX_LOCK_S)
        left_s = math.ceil(lock_s - (now - row["last_at"]).total_seconds())
        if left_s > 0:
            detail = f"Too many failed attempts for this name. Try again in {left_s} s."
            raise RequestError(429, "log_in_locked", detail, {"Retry-After": str(left_s)})
    password: str | None = connection.execute(select(users.c.password).where(users.c.name == name)).scalar()
    return password


def note_failure(connection: Connection, name: str, now: datetime) -> None:
    """Counts a failed attempt; the audit log has an entry when a name becomes locked."""
    connection.execute(delete(failed_log_ins).where(failed_log_ins.c.last_at < now - MEMORY))
    known = failed_log_ins.c.name == name
    count = (connection.execute(select(failed_log_ins.c.count).where(known)).scalar() or 0) + 1
    if count == 1:
        connection.execute(insert(failed_log_ins), {"name": name, "count": 1, "last_at": now})
    else:
        connection.execute(update(failed_log_ins).where(known).values(count=count, last_at=now))
    if count == MAX_FAILURES:
        add_audit_entry(connection, name, "lock the log-in", after={"name": name, "failures": count})


def log_in(connection: Connection, name: str, now: datetime) -> NewToken:
    """Starts a session of a user whose password was right."""
    connection.execute(delete(failed_log_ins).where(failed_log_ins.c.name == name))
    add_audit_entry(connection, name, "log in")
    return start_session(connection, name, is_screen=False, now=now)


def log_in_by_link(connection: Connection, token: str, now: datetime) -> NewToken:
    """Starts a session of the screen that a link is for; the link cannot be used again.

    Raises:
        RequestError: 401 `link_not_valid`.
    """
    found = (log_in_links.c.token == digest_of(token)) & (log_in_links.c.expires_at > now)
    name = connection.execute(delete(log_in_links).where(found).returning(log_in_links.c.user)).scalar()
    if name is None:
        detail = (
            "This link was used before, has expired, or is incomplete. Ask an administrator for a new one."
        )
        raise RequestError(401, "link_not_valid", detail)
    add_audit_entry(connection, name, "log in")
    return start_session(connection, name, is_screen=find_user(connection, name)["is_screen"], now=now)
