"""Passwords of users, stored as Argon2id hashes."""

import re
import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from zxcvbn import zxcvbn

from api.errors import RequestError

MIN_LENGTH = 10
MAX_LENGTH = 200
"""Characters; longer ones would only cost time."""
MIN_GUESSES = 10**6
"""Attempts that a new password must withstand, as zxcvbn estimates it; NIST SP 800-63B asks for a comparison
with common passwords and with words of the context.
"""
ESTIMATED_LENGTH = 40
"""Characters of a password whose guesses are estimated; more would take seconds."""
SUBSTITUTES = str.maketrans("{[<|", "(((1")
"""Characters that are estimated as another one for the same letter (c or l): zxcvbn tries each combination of
letters, which would take seconds.
"""
PRODUCT_WORDS = ("segdec", "segdecnet")

_estimating = threading.Lock()
"""zxcvbn stores the words of the context globally."""
_hasher = PasswordHasher()  # RFC 9106, for machines with little memory: 64 MiB, 50 ms


def hash_password(password: str, name: str) -> str:
    """Returns the hash of a new password of the user `name`.

    Raises:
        RequestError: 422 `weak_password` if it is too short, too long, or the name; 422 `guessable_password`
            if it is a common one, or made of the name, of the product's name or of simple patterns.
    """
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH or password.casefold() == name:
        detail = (
            f"The password has {len(password)} characters. Expected {MIN_LENGTH} to {MAX_LENGTH}, not the "
            "user's name."
        )
        raise RequestError(422, "weak_password", detail)
    if _is_guessable(password, name):
        detail = (
            "The password is easy to guess: it is a common one, or made of names, years or simple patterns. "
            "Expected for example three words that do not belong together."
        )
        raise RequestError(422, "guessable_password", detail)
    return _hasher.hash(password)


def _is_guessable(password: str, name: str) -> bool:
    words = [name, *re.split(r"\W+", name), *PRODUCT_WORDS]
    estimated = password[:ESTIMATED_LENGTH].translate(SUBSTITUTES)
    with _estimating:
        return bool(zxcvbn(estimated, words)["guesses"] < MIN_GUESSES)


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
