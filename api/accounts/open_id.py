"""Log-in at an OpenID Connect provider (authorization code with PKCE); Authlib implements the protocol."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth
from joserfc.errors import JoseError
from sqlalchemy import Connection, select

from api.accounts.sessions import NewToken, start_session
from api.accounts.settings import AccountSettings
from api.accounts.tables import users
from api.accounts.users import add_user, normalise_name, set_role
from api.errors import RequestError, service_unavailable
from api.record.queries import add_audit_entry
from api.roles import RANKS, UserRole
from segdec.errors import ConfigError

STATE_FIELDS = ("state", "nonce", "code_verifier")
"""What the browser keeps of a log-in that has begun."""
SCOPE = "openid profile email"
NAME_CLAIMS = ("preferred_username", "email", "name", "sub")
"""Claims that may have the name of a user; the first one counts."""
TIMEOUT_S = 10.0
WRONG_ANSWERS = (AuthlibBaseError, JoseError, ValueError, KeyError, TypeError, AttributeError, RuntimeError)
"""What Authlib raises for answers of a provider that it does not expect."""


@dataclass(frozen=True)
class Identity:
    """Who the provider says that a user is.

    `subject` is issuer and identifier there, which never change.
    """

    subject: str
    name: str
    role: UserRole


class OpenIdProvider:
    """An OpenID Connect provider, according to the settings.

    It sends the browser back to `redirect_uri`; after `session_time` a person logs in there again.

    Raises:
        ConfigError: If the file with the secret of the client cannot be read.
    """

    def __init__(self, settings: AccountSettings) -> None:
        self._issuer = settings.openid_issuer or ""
        self._client_id = settings.openid_client or ""
        self._claim, self._roles = settings.openid_claim, settings.openid_roles
        self._retry_after_s = settings.retry_after_s
        self.session_time = timedelta(hours=settings.openid_hours)
        self.redirect_uri = f"{settings.public_url}/v1/session/openid/callback"
        self._client = OAuth().register(
            "provider",
            client_id=self._client_id,
            client_secret=_read_secret(settings),
            server_metadata_url=f"{self._issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": SCOPE,
                "code_challenge_method": "S256",
                "timeout": TIMEOUT_S,
                "verify": httpx2.create_ssl_context(),  # made once: it takes 30 ms
            },
        )

    async def begin(self) -> tuple[str, str]:
        """Returns the address at which the user logs in, and what the browser must send back, as text.

        Raises:
            RequestError: 503 `provider_unavailable`.
        """
        try:
            started = await self._client.create_authorization_url(self.redirect_uri)
        except (httpx2.HTTPError, *WRONG_ANSWERS) as error:
            raise self._unavailable(error) from error
        kept = {name: started[name] for name in STATE_FIELDS}
        return started["url"], json.dumps(kept)

    async def finish(self, kept: str, state: str, code: str) -> Identity:
        """Returns who has logged in.

        `kept` is what `begin` returned to the browser; the provider sent `state` and `code`.

        Raises:
            RequestError: 401 `log_in_failed`, 403 `no_role`, 503 `provider_unavailable`.
        """
        started = _parse(kept)
        if not state or started.get("state") != state:
            raise _failed("the answer does not belong to a log-in that was begun in this browser")
        expected = {"iss": self._issuer, "aud": self._client_id}
        options = {name: {"essential": True, "value": value} for name, value in expected.items()}
        try:
            token = await self._client.fetch_access_token(
                self.redirect_uri, code=code, code_verifier=started["code_verifier"]
            )
            claims = await self._client.parse_id_token(token, nonce=started["nonce"], claims_options=options)
        except httpx2.HTTPError as error:
            raise self._unavailable(error) from error
        except WRONG_ANSWERS as error:
            raise _failed(str(error) or type(error).__name__) from error
        if claims is None:
            raise _failed("the provider sent no ID token")
        return self._identify(claims)

    def _identify(self, claims: Mapping[str, Any]) -> Identity:
        names = [name for claim in NAME_CLAIMS if (name := claims.get(claim)) and isinstance(name, str)]
        subject = claims.get("sub")
        if not names or not subject or not isinstance(subject, str):
            raise _failed("the ID token has no subject or no name")
        name, groups = normalise_name(names[0]), claims.get(self._claim)
        groups = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        known = [group for group in groups if isinstance(group, str) and group in self._roles]
        roles = [self._roles[group] for group in known]
        if not roles:
            detail = (
                f"'{name}' is in none of the groups that have a role here. Ask an administrator: the claim "
                f"'{self._claim}' has to contain one of: {', '.join(self._roles)}."
            )
            raise RequestError(403, "no_role", detail)
        return Identity(f"{self._issuer} {subject}", name, max(roles, key=RANKS.__getitem__))

    def _unavailable(self, error: Exception) -> RequestError:
        reason = str(error) or type(error).__name__
        detail = f"The OpenID Connect provider {self._issuer} cannot be used now: {reason}."
        return service_unavailable("provider_unavailable", detail, self._retry_after_s)


def log_in_identity(
    connection: Connection, identity: Identity, now: datetime, session_time: timedelta
) -> NewToken:
    """Starts a session of a user of the provider, who is added the first time; the role is that of now.

    Raises:
        RequestError: 409 `user_exists` if another user has the name.
    """
    statement = select(users).where(users.c.subject == identity.subject)
    known = connection.execute(statement).mappings().one_or_none()
    name = identity.name if known is None else known["name"]
    if known is None:
        add_user(connection, name, identity.role, password=None, subject=identity.subject, who=name, now=now)
    else:
        set_role(connection, name, known["role"], identity.role, name)
    add_audit_entry(connection, name, "log in")
    return start_session(connection, name, is_screen=False, now=now, max_time=session_time)


def _read_secret(settings: AccountSettings) -> str | None:
    path = settings.openid_secret
    if path is None:
        return None
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The file of --openid-secret, {path}, cannot be read: {error}") from error


def _parse(kept: str) -> dict[str, str]:
    try:
        values = json.loads(kept)
    except (ValueError, RecursionError):
        return {}
    is_complete = isinstance(values, dict) and all(isinstance(values.get(name), str) for name in STATE_FIELDS)
    return values if is_complete else {}


def _failed(reason: str) -> RequestError:
    return RequestError(401, "log_in_failed", f"The log-in failed: {reason}. Log in again.")
