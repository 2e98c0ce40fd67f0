"""Passwords of users, stored as Argon2id hashes."""

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from api.errors import RequestError

MIN_LENGTH = 10
MAX_LENGTH = 200
"""Characters; longer ones would only cost time."""

_hasher = PasswordHasher()  # RFC 9106, for machines with little memory: 64 MiB, 50 ms


def hash_password(password: str, name: str) -> str:
    """Returns the hash of a new password of the user `name`.

    Raises:
        RequestError: 422 `weak_password` if it is too short, too long, or the name.
    """
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH or password.casefold() == name:
        detail = (
            f"The password has {len(password)} characters. Expected {MIN_LENGTH} to {MAX_LENGTH}, not the "
            "user's name."
        )
        raise RequestError(422, "weak_password", detail)
    return _hasher.hash(password)


def is_password(stored: str | None, password: str) -> bool:
    """Returns whether `password` is the one whose hash is `stored`; None takes as long as a wrong one."""
    if len(password) > MAX_LENGTH:
        return False
    try:
        return _hasher.verify(stored or _hash_of_nobody(), password) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _hash_of_nobody() -> str:
    return _hasher.hash("")
