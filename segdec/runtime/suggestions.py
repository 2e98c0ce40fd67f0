"""Suggests a known name for an unknown one."""

import difflib
from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Returns the name in `known`, which must not be empty, that is most similar to `name`."""
    names = list(known)
    return name if name in names else difflib.get_close_matches(name, names, n=1, cutoff=0.0)[0]
