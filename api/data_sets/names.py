"""Names in data sets: of photographs, parts and classes. They must be names in a manifest, too."""

from collections.abc import Collection, Sequence

from api.errors import RequestError
from segdec.config import GOOD
from segdec.runtime.identifiers import is_reserved_class
from segdec.runtime.label_names import is_good, is_ignored, may_mean_good

MAX_CLASSES = 200
"""Mask values of classes begin at 1; 255 means an ignored area."""
MAX_CLASS_NAME = 128
"""Characters of a class, as of every name in a request."""
IGNORE = "ignore"
"""Label of a photograph that is left out of versions."""


def printable(text: str) -> str:
    """Returns a name in one line, without surrounding spaces; U+FFFD replaces unprintable characters."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text.strip()).strip()


def extend_classes(known: Sequence[str], added: Sequence[str]) -> list[str]:
    """Returns the classes of defects and further ones at the end: values in masks keep their meaning.

    Raises:
        RequestError: 400 if a new class has a name with another meaning, or that of another class.
    """
    classes = list(known)
    for name in map(printable, added):
        if not name or is_good(name) or is_ignored(name) or is_reserved_class(name):
            raise _bad_class(name, "has another meaning as a label. Expected the name of a kind of defect.")
        if len(name) > MAX_CLASS_NAME:
            raise _bad_class(name, f"has {len(name)} characters. Expected at most {MAX_CLASS_NAME}.")
        if any(name.casefold() == other.casefold() for other in classes):
            raise _bad_class(name, "is already a class. Expected a new name.")
        classes.append(name)
    if len(classes) > MAX_CLASSES:
        detail = f"{len(classes)} classes. Expected at most {MAX_CLASSES}: merge similar ones."
        raise RequestError(400, "bad_class", detail)
    return classes


def add_clear_classes(known: Sequence[str], added: Sequence[str]) -> list[str]:
    """As `extend_classes`, for names that a person chooses now: none may mean a good part."""
    for name in filter(may_mean_good, map(printable, added)):
        raise _bad_class(name, "may mean a good part. Expected the name of a kind of defect.")
    return extend_classes(known, added)


def check_label(label: str, classes: Collection[str]) -> None:
    """Raises RequestError 400 if a label is none of a data set with these classes."""
    if label not in (GOOD, IGNORE, *classes):
        expected = ", ".join((GOOD, IGNORE, *classes))
        text = "The label is '{label}'. Expected one of {expected}; an engineer can add a class."
        raise RequestError(400, "unknown_label", text, label=label[:80], expected=expected)


def _bad_class(name: str, what: str) -> RequestError:
    return RequestError(400, "bad_class", f"The class {name[:80]!r} {what}")
