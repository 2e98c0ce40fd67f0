"""From the labels that people give in annotation tools to the classes of a data set: the one rule.

The classes are `good` and the sorted names of all other labels. A label named `good` or `ok`, in any case,
says that nothing is wrong: what it marks is no defect.
"""

from collections.abc import Iterable

GOOD = "good"
DEFECT = "defect"
"""The class of defects that nobody has named."""

GOOD_NAMES = frozenset({GOOD, "ok"})


def is_good(label: str) -> bool:
    """Returns whether `label` says that nothing is wrong."""
    return label.lower() in GOOD_NAMES


def read_label(value: object) -> str:
    """Reads a label as annotation files hold it, without space around it.

    Raises:
        ValueError: If it is no text, empty or not printable, as half of a surrogate pair is.
    """
    if not isinstance(value, str):
        raise ValueError(f"the label {value!r:.40} is no text")
    label = value.strip()
    if not label:
        raise ValueError("the label is empty")
    if not label.isprintable():
        raise ValueError(f"the label {label!r:.40} holds characters that cannot be printed")
    return label


def class_names(labels: Iterable[str]) -> tuple[str, ...]:
    """Returns `good` and the sorted names of the defects among `labels`."""
    return (GOOD, *sorted({label for label in labels if not is_good(label)}))
