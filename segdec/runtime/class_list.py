"""The text of `classes.txt`, which lists the classes of defects of a folder with a manifest."""

from collections.abc import Sequence

from segdec.runtime.label_names import may_mean_good, negated_name


def format_class_list(defects: Sequence[str]) -> str:
    """Returns a line for each class of defects, the first one with the mask value 1.

    Above them is the line `good` if there are none, or if the name of one may mean good: the line states
    that all others are classes of defects.
    """
    is_unclear = not defects or any(may_mean_good(name) or negated_name(name) for name in defects)
    return "".join(f"{name}\n" for name in (*["good"] * is_unclear, *defects))
