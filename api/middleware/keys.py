"""Who may ask: API keys, kept as SHA-256 digests, and the paths that need one."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import RequestError, problem_response
from api.metrics import Metrics
from api.settings import Settings
from segdec.errors import ConfigError

Role = Literal["anyone", "predict", "review", "admin"]
"""Each may do what those before it may, and more: inspect; see and judge what was inspected; change what is
served."""
RANKS: dict[Role, int] = {"anyone": 0, "predict": 1, "review": 2, "admin": 3}

PUBLIC_PATHS = frozenset(
    {
        "/",
        "/line",
        "/review",
        "/livez",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/favicon.ico",
        "/v2",
    }
)
PUBLIC_PREFIXES = ("/docs/", "/static/", "/v2/health/")
ADMIN_PREFIX = "/v1/admin/"
REVIEW_PREFIXES = ("/v1/records/", "/v1/review/", "/v1/line/", "/v1/outbox/")

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
MAY = {"predict": "predict", "review": "predict and review"}
HOW_TO_SEND = "Send one as 'Authorization: Bearer KEY' or as 'X-API-Key: KEY'."
HOW_TO_MAKE = "Make one with: python -m api key NAME"


def role_for(path: str) -> Role:
    """Returns whom a path is for. If it is not listed as open it needs a key: a new route starts guarded."""
    path = path.rstrip("/") or "/"
    if f"{path}/".startswith(ADMIN_PREFIX):
        return "admin"
    if f"{path}/".startswith(REVIEW_PREFIXES):
        return "review"
    return "anyone" if path in PUBLIC_PATHS or f"{path}/".startswith(PUBLIC_PREFIXES) else "predict"


def request_path(scope: Scope) -> str:
    """Returns the path of a request below the prefix that a proxy may have added."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


# === Key files ===


@dataclass(frozen=True)
class Key:
    """One line of a key file."""

    name: str
    digest: bytes
    role: Role


def make_key(name: str) -> tuple[str, str]:
    """Makes a key for `name`.

    A key holds 256 random bits, so there is no dictionary to try: one round of SHA-256 keeps it as well
    as a slow password hash would, and costs a request nothing.

    Returns:
        The key, which is shown once, and the line that a key file keeps of it.

    Raises:
        ConfigError: If the name could not stand in a key file or a log line.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise ConfigError(f"Key name {name!r}; expected 1 to 64 letters, digits, '.', '_' or '-'.")
    key = f"segdec_{secrets.token_urlsafe(32)}"
    return key, f"{name}:{_digest(key).hex()}"


def print_new_key(name: str) -> None:
    """Makes a key for `name` and prints it with the line to keep; for the command line.

    Raises:
        ConfigError: If the name cannot be used.
    """
    key, line = make_key(name)
    print(
        f"key, shown only now: {key}\nline for the file of --api-keys, --review-keys or --admin-keys: {line}"
    )


def read_keys(path: Path, role: Role) -> list[Key]:
    """Reads a file of `NAME:SHA256` lines, keys of `role`; empty lines and those with `#` first are skipped.

    Raises:
        ConfigError: If the file cannot be read, holds no key, or has a line of another form.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ConfigError(f"Cannot read the key file {path}: {reason}.") from error
    keys = list(_parse(path, lines, role))
    if not keys:
        raise ConfigError(f"The key file {path} holds no key; expected NAME:SHA256 lines. {HOW_TO_MAKE}")
    return keys


def _parse(path: Path, lines: Sequence[str], role: Role) -> Iterator[Key]:
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]{1,64}):([0-9A-Fa-f]{64})", text)
        if match is None:  # the line is not repeated: it may be a key by mistake
            raise ConfigError(
                f"{path}, line {number}: expected NAME:SHA256, the digest as 64 hexadecimal digits. "
                f"{HOW_TO_MAKE}"
            )
        yield Key(match[1], bytes.fromhex(match[2]), role)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("latin-1", "replace")).digest()


# === Requests ===


class Keyring:
    """The keys that are accepted.

    Args:
        keys: By what they may at most; a role that is missing has no keys of its own. Without any, everyone
            may inspect and review, and nobody administer. Without those of `predict`, everyone may predict.
    """

    def __init__(self, keys: Mapping[Role, Sequence[Key]]) -> None:
        self._roles = frozenset(keys)
        # A key in several files has the highest role of them: the last one wins.
        self._keys = [key for role in sorted(keys, key=RANKS.__getitem__) for key in keys[role]]

    @classmethod
    def read(cls, settings: Settings) -> "Keyring":
        """Reads the files that the settings name.

        Raises:
            ConfigError: If one of them cannot be used.
        """
        files: dict[Role, Path | None] = {
            "predict": settings.api_keys,
            "review": settings.review_keys,
            "admin": settings.admin_keys,
        }
        return cls({role: read_keys(path, role) for role, path in files.items() if path is not None})

    @property
    def names(self) -> list[str]:
        """Names of all keys."""
        return [key.name for key in self._keys]

    def replace_with(self, other: "Keyring") -> None:
        """Accepts the keys of `other` from now on, and no others."""
        self._keys = other._keys

    def requires_key(self, role: Role) -> bool:
        """Returns whether paths for `role` need a key: pictures need one wherever there are any."""
        if role == "review":
            return bool(self._roles)
        return role == "admin" or (role == "predict" and "predict" in self._roles)

    def authorize(self, role: Role, headers: Headers) -> str | None:
        """Returns the name of the key with which a request may go on; None where none is needed.

        Raises:
            RequestError: 401 without a known key, 403 with one that may not.
        """
        if not self.requires_key(role):
            return None
        if max(map(RANKS.__getitem__, self._roles), default=0) < RANKS[role]:
            raise RequestError(
                403, f"{role}_off", f"No {role} keys are set. Start with --{role}-keys FILE. {HOW_TO_MAKE}"
            )
        key = self._find(headers)
        if RANKS[key.role] < RANKS[role]:
            raise RequestError(
                403, f"not_{role}", f"The key '{key.name}' may {MAY[key.role]} only; expected a {role} key."
            )
        return key.name

    def _find(self, headers: Headers) -> Key:
        sent = _sent_key(headers)
        if not sent:
            raise _unauthorized("missing_key", f"No API key arrived. {HOW_TO_SEND}")
        digest, found = _digest(sent), None
        for key in self._keys:  # to the end, so that the time tells nothing about where it matched
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None:
            raise _unauthorized("unknown_key", f"The API key is not known here. {HOW_TO_SEND}")
        return found


def _sent_key(headers: Headers) -> str:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "").strip()


def _unauthorized(code: str, message: str) -> RequestError:
    return RequestError(401, code, message, {"WWW-Authenticate": "Bearer"})


class KeyMiddleware:
    """Refuses a request without the right key before its body is read or its path looked up.

    The name of the key is left in the request's state as `key`.
    """

    def __init__(self, app: ASGIApp, keyring: Keyring, metrics: Metrics) -> None:
        self.app = app
        self.keyring = keyring
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            scope["state"]["key"] = self.keyring.authorize(
                role_for(request_path(scope)), Headers(scope=scope)
            )
        except RequestError as error:
            self.metrics.count_rejection(error.code)
            request_id = scope["state"]["request_id"]
            response = problem_response(request_id, error.status, error.code, str(error), error.headers)
            await response(scope, receive, send)
            return
        await self.app(scope, receive, send)


def document_keys(app: FastAPI, keyring: Keyring) -> None:
    """Adds the two ways of sending a key to the OpenAPI document, for the paths that need one."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        document = describe()
        document.setdefault("components", {})["securitySchemes"] = SCHEMES
        for path, operations in document["paths"].items():
            if keyring.requires_key(role_for(path)):
                for operation in operations.values():
                    operation["security"] = [{name: []} for name in SCHEMES]
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend the document
