"""Decides which labels of a data set mean good, and asks the user about those that may.

The words of a label decide, see `segdec.runtime.label_names`, and then the other labels: `uncracked` may mean
good beside `cracked`. If these are the only two labels, it does, because a crack is a usual defect. The user
can answer for each label.
"""

import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from datasets.causes import Cause, CodedDatasetError
from datasets.reading_options import ReadingOptions
from segdec.errors import DatasetError
from segdec.runtime.counts import count_of
from segdec.runtime.identifiers import is_reserved_class
from segdec.runtime.label_names import (
    affirmed_name,
    is_any_defect,
    is_good,
    is_ignored,
    may_mean_good,
    names_usual_defect,
    negated_name,
    plain_label,
)
from segdec.runtime.suggestions import nearest_name

_OBVIOUS = frozenset(
    {"good", "ok", "okay", "io", "gut", "normal", "pass", "passed", "nodefect", "defectfree", "gutteile"}
    | {"goodparts"}
)
"""Plain labels that mean good, of which no note is necessary."""


@dataclass(frozen=True)
class LabelMeanings:
    """The labels that mean good, and the `unclear` ones that may."""

    good: frozenset[str]
    unclear: frozenset[str]


def interpret_labels(labels: Iterable[str], reading: ReadingOptions) -> LabelMeanings:
    """Decides about the labels of a data set, all of which must be given."""
    good_answers, defect_answers = map(_plain, (reading.good_labels, reading.defect_labels))
    classes = {label for label in labels if not is_ignored(label) and not is_reserved_class(label)}
    named = {affirmed_name(label): label for label in classes}
    defects = {negated_name(label) for label in classes if plain_label(label) in defect_answers}
    good_names = {affirmed_name(label) for label in classes if plain_label(label) in good_answers}
    is_pair = len(_plain(classes)) == 2
    good, unclear = set(), set()
    for label in classes:
        negated = negated_name(label)
        opposite = named.get(negated) if negated else None
        if is_good(label) or plain_label(label) in good_answers:
            good.add(label)
        elif is_any_defect(label) or plain_label(label) in defect_answers or negated in good_names:
            continue
        elif is_pair and opposite and names_usual_defect(opposite):
            good.add(label)
        elif opposite or may_mean_good(label) or affirmed_name(label) in defects:
            unclear.add(label)
    return LabelMeanings(frozenset(good), frozenset(unclear))


def raise_if_unclear(labels: Collection[str], meanings: LabelMeanings) -> None:
    """Raises a CodedDatasetError, which asks for an answer, if one of the labels may mean good."""
    for label in sorted(meanings.unclear.intersection(labels)):
        quoted = shlex.quote(label)
        raise CodedDatasetError(
            f"The label '{label}' may mean that there is no defect. If it does, rename it to 'good' or give "
            f"--good {quoted}; if it is a class of defects, give --defect {quoted} (python -m training run: "
            "--data.good-labels, --data.defect-labels).",
            Cause("unclear_label", {"label": label}),
        )


def describe_good(label: str, photographs: int) -> list[str]:
    """Returns a note about a label of so many photographs that was read as good, unless it is obvious."""
    number = count_of(photographs, "photograph")
    return [f"The label '{label}' of {number} was read as good."] * (not is_obviously_good(label))


def is_obviously_good(label: str) -> bool:
    """Returns whether everybody knows that `label` means good, as `OK` and `no defect`."""
    return plain_label(label) in _OBVIOUS


def check_answers(reading: ReadingOptions, labels: Collection[str]) -> None:
    """Checks the answers of the user; `labels` are all labels of the data set.

    Raises:
        DatasetError: If an answer names another label, or contradicts a second answer or the label.
    """
    known = _plain(labels)
    for name in (*reading.good_labels, *reading.defect_labels):
        if plain_label(name) not in known:
            nearest = f"Nearest label: '{nearest_name(name, sorted(labels))}'." if labels else "It has none."
            raise DatasetError(
                f"The data set has no label '{name}', which --good or --defect (data.good_labels, "
                f"data.defect_labels) names. {nearest}"
            )
    for name in reading.defect_labels:
        if is_good(name) or plain_label(name) in _plain(reading.good_labels):
            given = "always means good" if is_good(name) else "is also given as --good (data.good_labels)"
            raise DatasetError(
                f"The label '{name}' of --defect (data.defect_labels) {given}. Remove one of the two "
                "answers, or rename the label."
            )


def _plain(labels: Iterable[str]) -> set[str]:
    return set(map(plain_label, labels))
