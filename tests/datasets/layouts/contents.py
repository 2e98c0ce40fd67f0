"""What a listed data set holds, in a form that tests compare."""

from collections.abc import Iterable, Sequence

import numpy as np

from datasets.reading import read
from datasets.sample import Dataset, DataSetIssue, DataSetItem

Pixels = list[tuple[int, int]]


def described(dataset: Dataset) -> list[tuple[str, str, str, bool]]:
    """Name, class, supervision of each item, and whether it has a mask."""
    return [(r.name, dataset.classes[r.label], r.supervision, r.mask_file is not None) for r in dataset.items]


def marked(item: DataSetItem) -> Pixels:
    """The defect pixels as (row, column)."""
    mask = read(item).mask
    assert mask is not None
    return [(row, column) for row, column in np.argwhere(mask).tolist()]


def block(rows: Iterable[int], columns: Sequence[int]) -> Pixels:
    return [(row, column) for row in rows for column in columns]


def check_problems(dataset: Dataset, expected: Sequence[tuple[str, str, str]]) -> None:
    """Compares the problems with (end of the place, name, part of the text), in any order."""
    _check(dataset.problems, expected)


def check_dropped(dataset: Dataset, expected: Sequence[tuple[str, str, str]]) -> None:
    """Compares the dropped shapes like `check_problems`."""
    _check(dataset.dropped, expected)


def _check(problems: Sequence[DataSetIssue], expected: Sequence[tuple[str, str, str]]) -> None:
    remaining = list(problems)
    for place, name, words in expected:
        found = [
            each
            for each in remaining
            if each.name == name and each.place.endswith(place) and words.lower() in each.text.lower()
        ]
        assert found, (place, name, words, remaining)
        remaining.remove(found[0])
    assert not remaining
