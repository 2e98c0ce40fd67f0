"""Labels with a meaning of their own in every data set, whatever the classes of defects are."""

import re

GOOD_NAMES = frozenset(
    {
        "good",
        "ok",
        "okay",
        "gut",
        "io",
        "normal",
        "pass",
        "passed",
        "nodefect",
        "defectfree",
        "gutteile",
        "goodparts",
    }
)
IGNORED_NAMES = frozenset({"ignore", "ignored", "dontcare"})


def is_good(label: str) -> bool:
    """Returns whether `label` means that there is no defect, such as `good`, `OK`, `i.O.` or `no defect`."""
    return plain_label(label) in GOOD_NAMES


def is_ignored(label: str) -> bool:
    """Returns whether `label` means that the class is unknown, such as LabelMe's `__ignore__`."""
    return plain_label(label) in IGNORED_NAMES


def plain_label(label: str) -> str:
    """Returns the label in lower case without separators."""
    return re.sub(r"[\s._-]", "", label.lower())
