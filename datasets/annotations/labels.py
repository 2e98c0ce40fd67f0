"""Maps labels of annotation tools to classes."""

from collections.abc import Iterable

from segdec.runtime.label_names import is_good, is_ignored

GOOD = "good"
DEFECT = "defect"
"""The class of defects without a name."""


def is_defect(label: str) -> bool:
    """Returns whether `label` means a defect: neither good nor ignored."""
    return not is_good(label) and not is_ignored(label)


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
