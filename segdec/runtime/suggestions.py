"""What a user may have meant by a name that nobody knows."""

import difflib
from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Finds the name in `known` that looks most like `name`, however little; `known` must hold one."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]
