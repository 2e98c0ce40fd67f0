"""Decides whether a request is allowed: by its API key, or by the session of a user."""

import hmac
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from starlette.requests import Request

from api.accounts.keys import Keyring, has_key
from api.accounts.settings import AccountSettings
from api.addresses import is_loopback
from api.errors import RequestError
from api.http.callers import SAFE_METHODS
from api.roles import Role, UserRole, includes, key_role_for

if TYPE_CHECKING:
    from api.accounts.sessions import Session
    from api.record.record import Record

COOKIE = "segdec_session"
CSRF_HEADER = "X-CSRF-Token"
USERS_CHECK_S = 5.0
"""Seconds after which the database is asked again whether there are users: `python -m api user` may have
added the first one.
"""
HOW_TO_ADD = "Add the first user with: python -m api user add NAME --role administrator."

logger = logging.getLogger(__name__)


class AccessControl:
    """Decides whether requests are allowed.

    An API key counts first, then the session of a user. Without either, a request is allowed if its role
    needs none: `predict` unless the service has keys for it, and up to `settings.local_role` if there are
    neither keys nor users, and only programs of this machine reach the service: it listens on a loopback
    address, has no public address or allowed hosts, and no proxy has passed the request on. `find_record`
    returns the record, which contains the users; None without one, or before the start.
    """

    def __init__(
        self, settings: AccountSettings, keyring: Keyring, find_record: Callable[[], "Record | None"]
    ) -> None:
        self.keyring = keyring
        is_published = settings.public_url is not None or bool(settings.allowed_hosts)
        self._is_local = is_loopback(settings.host) and not is_published
        self._local_role = settings.local_role
        self._keeps_record = settings.record != "off"
        self._find_record = find_record
        self._has_provider = settings.openid_issuer is not None
        self._has_users = False
        self._checked_at = -USERS_CHECK_S

    async def authorize(self, role: Role, request: Request) -> None:
        """Leaves the name of the caller in the request's state, as `key` or as `user`; None without one.

        Raises:
            RequestError: 401 without a key or session, 403 with a lower role or without a valid CSRF token,
                503 if sessions cannot be read.
        """
        state = request.state
        state.key = state.user = None
        if role == "anyone":
            return
        if not has_key(request.headers) and (session := await self._find_session(role, request)) is not None:
            check_csrf_token(session, request)
            _check_role(session, role)
            state.user = session.user
        elif await self._needs_caller(role, request):
            await self._explain_log_in(role, request)
            state.key = self.keyring.authorize(key_role_for(role), request.headers)

    async def find_session(self, request: Request) -> "Session | None":
        """Returns the session of a request; None without a valid one.

        Raises:
            RequestError: 503 if sessions cannot be read.
        """
        record, token = self._find_record(), request.cookies.get(COOKIE)
        if record is None or not token:
            return None
        from api.accounts.sessions import find_session

        return await record.read(find_session, token, datetime.now(UTC))

    async def has_users(self) -> bool:
        """Returns whether anybody can log in, as of a few seconds ago."""
        if self._has_provider:
            return True
        record = self._find_record()
        if record is not None and time.monotonic() - self._checked_at >= USERS_CHECK_S:
            from api.accounts.users import has_users

            self._has_users = await record.read(has_users)
            self._checked_at = time.monotonic()
        return self._has_users

    async def log_open_access(self) -> None:
        """Logs who may read the record if there are neither users nor keys."""
        if not self._keeps_record or self.keyring.has_keys or await self.has_users():
            return
        if self._is_local:
            logger.info(
                "No users: everybody on this machine has the role %s. %s", self._local_role, HOW_TO_ADD
            )
        else:
            logger.warning("No users and no keys: nobody may read or review the record. %s", HOW_TO_ADD)

    def forget_users(self) -> None:
        """Asks the database again at the next request."""
        self._checked_at = -USERS_CHECK_S

    async def local_role(self, request: Request) -> UserRole | None:
        """Returns the role of a caller without key and session; None if there is none."""
        return None if await self._needs_caller(self._local_role, request) else self._local_role

    async def _find_session(self, role: Role, request: Request) -> "Session | None":
        try:
            return await self.find_session(request)
        except RequestError:
            if role == "predict" and not self.keyring.requires_key("predict"):
                return None  # photographs are inspected during an outage of an optional record
            raise

    async def _needs_caller(self, role: Role, request: Request) -> bool:
        if role in ("predict", "train"):
            return self.keyring.requires_key(key_role_for(role))
        if self.keyring.has_keys or not includes(self._local_role, role):
            return True
        return not (self._is_local and _is_local_client(request)) or await self.has_users()

    async def _explain_log_in(self, role: Role, request: Request) -> None:
        """Raises an error that explains what a person can do who has no key."""
        if has_key(request.headers) or not self._keeps_record or role == "train":
            return
        if await self.has_users():
            detail = "Log in, or send an API key: 'Authorization: Bearer KEY' or 'X-API-Key: KEY'."
            raise RequestError(401, "not_logged_in", detail, {"WWW-Authenticate": "Bearer"})
        if role != "predict" and not self.keyring.has_keys:
            key_role = key_role_for(role)
            reason = "There are neither users nor keys"
            if not self._is_local:
                reason += ", and others can reach this address"
            detail = f"{reason}. {HOW_TO_ADD} Or start with --{key_role}-keys FILE."
            raise RequestError(403, f"{key_role}_off", detail)


def check_csrf_token(session: "Session", request: Request) -> None:
    """Checks that a request which changes something was sent by a page of this service.

    Raises:
        RequestError: 403 `csrf`.
    """
    sent = request.headers.get(CSRF_HEADER, "")
    if request.method in SAFE_METHODS or hmac.compare_digest(sent.encode(), session.csrf_token.encode()):
        return
    detail = f"The header {CSRF_HEADER} is missing or not that of the session. Reload the page."
    raise RequestError(403, "csrf", detail)


def _is_local_client(request: Request) -> bool:
    """Returns whether a program of this machine sent a request; false if a proxy passed it on."""
    is_passed_on = "x-forwarded-for" in request.headers or "forwarded" in request.headers
    return not is_passed_on and request.client is not None and is_loopback(request.client.host)


def _check_role(session: "Session", role: Role) -> None:
    if not includes(session.role, role):
        detail = (
            f"'{session.user}' has the role {session.role}; this needs the role {role}. Ask an administrator."
        )
        raise RequestError(403, "role_too_low", detail)
