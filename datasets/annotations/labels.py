"""Maps labels of annotation tools to classes."""

from collections.abc import Iterable

GOOD = "good"
DEFECT = "defect"
"""The class of defects without a name."""

GOOD_NAMES = frozenset({GOOD, "ok"})


def is_good(label: str) -> bool:
    """Returns whether `label` means that there is no defect: `good` or `ok`, in any case."""
    return label.lower() in GOOD_NAMES


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
    return (GOOD, *sorted({label for label in labels if not is_good(label)}))
