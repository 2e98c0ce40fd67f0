"""Maps labels of annotation tools to classes."""

import re
from collections.abc import Iterable

GOOD = "good"
DEFECT = "defect"
"""The class of defects without a name."""

GOOD_NAMES = frozenset(
    {
        GOOD,
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
DEFECT_NAMES = frozenset(
    {DEFECT, "defects", "defective", "nok", "notok", "nio", "ng", "bad", "ko", "fail", "failed", "faulty"}
    | {"anomaly", "anomalies", "abnormal", "schlecht", "fehler", "reject", "rejected"}
)
"""Names of a class for all defects."""


IGNORED_NAMES = frozenset({"ignore", "ignored", "dontcare"})


def is_ignored(label: str) -> bool:
    """Returns whether `label` means that the class is unknown, such as LabelMe's `__ignore__`."""
    return _plain(label) in IGNORED_NAMES


def is_good(label: str) -> bool:
    """Returns whether `label` means that there is no defect, such as `good`, `OK`, `i.O.` or `no defect`."""
    return _plain(label) in GOOD_NAMES


def is_any_defect(label: str) -> bool:
    """Returns whether `label` means a defect of any kind, such as `defect`, `NOK` or `n.i.O.`."""
    return _plain(label) in DEFECT_NAMES


def is_defect(label: str) -> bool:
    """Returns whether `label` means a defect: neither good nor ignored."""
    return not is_good(label) and not is_ignored(label)


def _plain(label: str) -> str:
    """The label in lower case without separators."""
    return re.sub(r"[\s._-]", "", label.lower())


def read_label(value: object) -> str:
    """Returns a label without surrounding spaces; ValueError if it is not a string, empty or unprintable."""
    if not isinstance(value, str):
        raise ValueError(f"the label {value!r:.40} is not a string")
    label = value.strip()
    if not label:
        raise ValueError("the label is empty")
    if not label.isprintable():
        raise ValueError(f"the label {label!r:.40} holds unprintable characters")
    return label


def class_names(labels: Iterable[str]) -> tuple[str, ...]:
    """Returns `good` and the sorted names of the defects among `labels`."""
    return (GOOD, *sorted({label for label in labels if is_defect(label)}))
