"""API keys: the files that store them as SHA-256 digests, and what each may do."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers

from api.accounts.settings import AccountSettings
from api.errors import RequestError
from api.roles import KEY_RANKS, KeyRole, key_includes
from segdec.errors import ConfigError

ALLOWED_ACTIONS = {
    "train": "fetch training jobs only",
    "predict": "predict only",
    "review": "predict and review only",
    "admin": "do everything except fetch training jobs",
}
GENERATED_KEY = re.compile(r"segdec_[A-Za-z0-9_-]{20,}")
"""A key of `make_key`, or most of one."""
HOW_TO_SEND = "Send one as 'Authorization: Bearer KEY' or as 'X-API-Key: KEY'."
HOW_TO_MAKE = "Make one with: python -m api key NAME"


# === Key files ===


@dataclass(frozen=True)
class Key:
    """One line of a key file."""

    name: str
    digest: bytes
    role: KeyRole


def make_key(name: str) -> tuple[str, str]:
    """Makes a key for `name`; returns the key, which is shown once, and its line for a key file.

    A key has 256 random bits, which no dictionary contains: one round of SHA-256 protects it as well as a
    slow password hash, and takes no time.

    Raises:
        ConfigError: If the name has characters that are special in a key file or a log line.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise ConfigError(
            f"Key name {name!r}; expected 1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'."
        )
    key = f"segdec_{secrets.token_urlsafe(32)}"
    return key, f"{name}:{_digest(key).hex()}"


def print_new_key(name: str) -> None:
    """Makes a key for `name` and prints it with its line for a key file; for the command line."""
    key, line = make_key(name)
    print(
        f"key, shown only now: {key}\n"
        f"line for the file of --api-keys, --review-keys, --admin-keys or --train-keys: {line}"
    )


def read_keys(path: Path, role: KeyRole) -> list[Key]:
    """Reads a file of `NAME:SHA256` lines, keys of `role`; skips empty lines and lines that start with `#`.

    Raises:
        ConfigError: If the file cannot be read, has no key or an invalid line.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"Cannot read the key file {path}: {reason}.") from error
    keys = list(_parse(path, lines, role))
    if not keys:
        raise ConfigError(f"The key file {path} holds no key; expected NAME:SHA256 lines. {HOW_TO_MAKE}")
    return keys


def _parse(path: Path, lines: Sequence[str], role: KeyRole) -> Iterator[Key]:
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]{1,64}):([0-9A-Fa-f]{64})", text)
        if match is None:  # the message does not repeat the line: it may be a key by mistake
            raise ConfigError(
                f"{path}, line {number}: expected NAME:SHA256, the digest as 64 hexadecimal digits. "
                f"{HOW_TO_MAKE}"
            )
        yield Key(match[1], bytes.fromhex(match[2]), role)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("latin-1", "replace")).digest()


# === Requests ===


class Keyring:
    """The keys that are accepted, by role.

    A role that is missing has no keys of its own. Without any keys, everyone may predict and review, and
    nobody may administer. Without keys of `predict`, everyone may predict.
    """

    def __init__(self, keys: Mapping[KeyRole, Sequence[Key]]) -> None:
        self._roles = frozenset(keys)
        # A key in several files has the highest role of them: the last one wins.
        self._keys = [key for role in sorted(keys, key=KEY_RANKS.__getitem__) for key in keys[role]]

    @classmethod
    def read(cls, settings: AccountSettings) -> "Keyring":
        """Reads the files that the settings name; raises a ConfigError if one is invalid."""
        files: dict[KeyRole, Path | None] = {
            "predict": settings.api_keys,
            "review": settings.review_keys,
            "admin": settings.admin_keys,
            "train": settings.train_keys,
        }
        return cls({role: read_keys(path, role) for role, path in files.items() if path is not None})

    @property
    def names(self) -> list[str]:
        return [key.name for key in self._keys]

    def replace_with(self, other: "Keyring") -> None:
        """Accepts the keys of `other` from now on, and no others."""
        self._keys = other._keys

    def requires_key(self, role: KeyRole) -> bool:
        """Returns whether routes for `role` need a key; those for `review` do if any keys are set."""
        if role == "review":
            return self.has_keys
        return role in ("admin", "train") or (role == "predict" and "predict" in self._roles)

    @property
    def has_keys(self) -> bool:
        """Whether there are keys of any role; those of training workers do not count."""
        return bool(self._roles - {"train"})

    def authorize(self, role: KeyRole, headers: Headers) -> str:
        """Returns the name of the key that allows a request which needs one.

        Raises:
            RequestError: 401 without a known key, 403 with a key of a lower role.
        """
        if not any(key_includes(held, role) for held in self._roles):
            detail = f"No {role} keys are set. Start with --{role}-keys FILE. {HOW_TO_MAKE}"
            raise RequestError(403, f"{role}_off", detail)
        key = self._find(headers)
        if not key_includes(key.role, role):
            detail = (
                f"The key '{key.name}' may {ALLOWED_ACTIONS[key.role]}; expected a key with the role "
                f"'{role}'."
            )
            raise RequestError(403, f"not_{role}", detail)
        return key.name

    def check_login(self, name: str, key: str) -> bool:
        """Returns whether `key` is a key of this name that may read the record."""
        digest, is_known = _digest(key), False
        for known in self._keys:  # all of them, so that the time does not depend on the position
            if hmac.compare_digest(known.digest, digest) and known.name == name:
                is_known = is_known or key_includes(known.role, "review")
        return is_known

    def _find(self, headers: Headers) -> Key:
        sent = _sent_key(headers)
        if not sent:
            raise _unauthorized("missing_key", f"No API key arrived. {HOW_TO_SEND}")
        key = self._match(sent)
        if key is None:
            raise _unauthorized("unknown_key", f"The API key is not known here. {HOW_TO_SEND}")
        return key

    def _match(self, sent: str) -> Key | None:
        digest, match = _digest(sent), None
        for key in self._keys:  # all of them, so that the time does not depend on the position
            if hmac.compare_digest(key.digest, digest):
                match = key
        return match

    def check_is_no_key(self, name: str, text: str | None) -> None:
        """Checks that `text`, which is going to be stored as `name`, contains no key.

        Raises:
            RequestError: 400, without the text.
        """
        words = (text or "").split()
        if any(GENERATED_KEY.search(word) or self._match(word) for word in (*words, " ".join(words))):
            detail = f"The {name} contains an API key, which others could read. Send it without the key."
            raise RequestError(400, "key_in_text", detail)


def has_key(headers: Headers) -> bool:
    """Returns whether a request was sent with a key, known or not."""
    return bool(_sent_key(headers))


def _sent_key(headers: Headers) -> str:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "").strip()


def _unauthorized(code: str, message: str) -> RequestError:
    return RequestError(401, code, message, {"WWW-Authenticate": "Bearer"})
