"""The users: adding, changing and removing them. Every change is an entry of the audit log."""

import secrets
import unicodedata
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, delete, exists, func, insert, select, update

from api.accounts.sessions import digest_of, end_sessions
from api.accounts.tables import failed_log_ins, log_in_links, users
from api.errors import RequestError
from api.record.queries import add_audit_entry
from api.roles import UserRole
from segdec.runtime.identifiers import check_identifier

COMMAND_LINE = "the command line"
"""Whom the audit log names for changes by `python -m api user`."""
MAX_NAME = 64
BLANK_LETTERS = "\u115f\u1160\u3164"
"""Letters that fonts show as nothing; others that they show as nothing have the category Cf."""
RESERVED_NAMES = {".", "..", "service", "retention", "outbox", COMMAND_LINE}
"""Names of others in the audit log, and those that an address cannot contain."""
LINK_TIME = timedelta(hours=24)
"""Time in which a link must be used."""


def normalise_name(name: str) -> str:
    """Returns a name as it is stored: in lower case, without surrounding spaces.

    Raises:
        RequestError: 422 `bad_name` if it is empty or too long, has a slash or invisible characters, or is
            reserved.
    """
    normal = unicodedata.normalize("NFKC", name).strip().casefold()
    try:
        check_identifier(normal)
    except ValueError:
        normal = ""
    invisible = any(
        unicodedata.category(character) == "Cf" or character in BLANK_LETTERS for character in normal
    )
    if not 1 <= len(normal) <= MAX_NAME or "/" in normal or invisible or normal in RESERVED_NAMES:
        detail = (
            f"The name is {name[:MAX_NAME]!r}. Expected 1 to {MAX_NAME} visible characters without '/', and "
            f"none of: {', '.join(sorted(RESERVED_NAMES))}."
        )
        raise RequestError(422, "bad_name", detail)
    return normal


def has_users(connection: Connection) -> bool:
    """Returns whether anybody can log in."""
    return bool(connection.execute(select(exists().select_from(users))).scalar())


def list_users(connection: Connection, after: str = "", limit: int | None = None) -> list[RowMapping]:
    """Returns users in order of their names, which come after `after`; at most `limit`, None: all."""
    columns = (users.c.name, users.c.role, users.c.is_screen, users.c.created_at)
    statement = select(*columns).where(users.c.name > after).order_by(users.c.name).limit(limit)
    return list(connection.execute(statement).mappings())


def find_user(connection: Connection, name: str) -> RowMapping:
    """Returns a user; raises a RequestError, 404 `user_not_found`."""
    row = connection.execute(select(users).where(users.c.name == name)).mappings().one_or_none()
    if row is None:
        raise RequestError(404, "user_not_found", f"There is no user '{name}'.")
    return row


def add_user(
    connection: Connection,
    name: str,
    role: UserRole,
    *,
    password: str | None,
    who: str,
    now: datetime,
    is_screen: bool = False,
    subject: str | None = None,
) -> None:
    """Adds a user; `name` as `normalise_name` returns it, `password` as hash.

    Raises:
        RequestError: 409 `user_exists`; 409 `no_administrator` if the first user is not an administrator.
    """
    if connection.execute(select(users.c.name).where(users.c.name == name)).first():
        raise RequestError(409, "user_exists", f"There is a user '{name}' already. Choose another name.")
    is_first = not has_users(connection)
    row = {
        "name": name,
        "role": role,
        "is_screen": is_screen,
        "password": password,
        "subject": subject,
        "created_at": now,
    }
    connection.execute(insert(users), row)
    if is_first and subject is None:
        _check_administrator(connection)
    add_audit_entry(connection, who, "add a user", after={"name": name, "role": role})


def change_role(connection: Connection, name: str, role: UserRole, who: str) -> None:
    """Changes the role of a user; raises a RequestError, 404 `user_not_found`; 409 `no_administrator`."""
    before = find_user(connection, name)["role"]
    set_role(connection, name, before, role, who)
    if before == "administrator":
        _check_administrator(connection)


def set_role(connection: Connection, name: str, before: UserRole, role: UserRole, who: str) -> None:
    """Sets the role of a user who has the role `before`, even of the last administrator."""
    if role == before:
        return
    connection.execute(update(users).where(users.c.name == name).values(role=role))
    old, new = ({"name": name, "role": it} for it in (before, role))
    add_audit_entry(connection, who, "change a user's role", before=old, after=new)


def set_password(connection: Connection, name: str, password: str, who: str) -> None:
    """Sets the hash of a user's password, ends the user's sessions, and unlocks the log-in.

    Raises:
        RequestError: 404 `user_not_found`; 409 `screen_has_no_password`.
    """
    if find_user(connection, name)["is_screen"]:
        detail = f"The user '{name}' is a screen, which logs in with a link. Make a new link."
        raise RequestError(409, "screen_has_no_password", detail)
    connection.execute(update(users).where(users.c.name == name).values(password=password))
    connection.execute(delete(failed_log_ins).where(failed_log_ins.c.name == name))
    end_sessions(connection, name)
    add_audit_entry(connection, who, "set a user's password", after={"name": name})


def remove_user(connection: Connection, name: str, who: str) -> None:
    """Removes a user with all sessions and links; entries of the audit log keep the name.

    Raises:
        RequestError: 404 `user_not_found`; 409 `no_administrator`.
    """
    role = find_user(connection, name)["role"]
    connection.execute(delete(users).where(users.c.name == name))
    if role == "administrator":
        _check_administrator(connection)
    add_audit_entry(connection, who, "remove a user", before={"name": name, "role": role})


def make_link(connection: Connection, name: str, who: str, now: datetime) -> tuple[str, datetime]:
    """Makes a link with which the screen `name` logs in, once; returns its token and when it expires.

    Raises:
        RequestError: 404 `user_not_found`; 409 `not_a_screen`.
    """
    if not find_user(connection, name)["is_screen"]:
        detail = f"The user '{name}' is a person, who logs in with a password."
        raise RequestError(409, "not_a_screen", detail)
    token, expires_at = secrets.token_urlsafe(32), now + LINK_TIME
    connection.execute(
        delete(log_in_links).where((log_in_links.c.user == name) | (log_in_links.c.expires_at <= now))
    )
    connection.execute(
        insert(log_in_links), {"token": digest_of(token), "user": name, "expires_at": expires_at}
    )
    add_audit_entry(connection, who, "make a log-in link", after={"name": name})
    return token, expires_at


def check_still_administrator(connection: Connection, caller: str | None) -> None:
    """Checks, in the transaction of a change, that the user who makes it may do so; None: a key or nobody.

    Raises:
        RequestError: 403 `role_too_low` if another administrator has changed or removed the user meanwhile.
    """
    if caller is None:
        return
    role = connection.execute(select(users.c.role).where(users.c.name == caller)).scalar()
    if role != "administrator":
        detail = f"'{caller}' is not an administrator any more. Nothing was changed."
        raise RequestError(403, "role_too_low", detail)


def link_path(token: str) -> str:
    """Returns the path of the page that logs a screen in, relative to the address of the pages."""
    return f"line?kiosk=on#log-in={token}"  # browsers do not send what follows the #


def _check_administrator(connection: Connection) -> None:
    """Checks that the users, if there are any, include an administrator."""
    counts = connection.execute(
        select(func.count(), func.count().filter(users.c.role == "administrator")).select_from(users)
    ).one()
    if counts[0] and not counts[1]:
        detail = "No user would have the role administrator, who adds users. Expected at least one."
        raise RequestError(409, "no_administrator", detail)
