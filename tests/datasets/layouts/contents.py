"""What a listed data set holds, in a form that tests compare."""

from collections.abc import Iterable, Sequence

import numpy as np

from datasets.reading import read
from datasets.sample import Dataset, Record

Pixels = list[tuple[int, int]]


def described(dataset: Dataset) -> list[tuple[str, str, str, bool]]:
    """Name, class, supervision of each record, and whether it has a mask."""
    return [
        (r.name, dataset.classes[r.label], r.supervision, r.mask_file is not None) for r in dataset.records
    ]


def marked(record: Record) -> Pixels:
    """The defect pixels as (row, column)."""
    mask = read(record).mask
    assert mask is not None
    return [(row, column) for row, column in np.argwhere(mask).tolist()]


def block(rows: Iterable[int], columns: Sequence[int]) -> Pixels:
    return [(row, column) for row in rows for column in columns]


def check_problems(dataset: Dataset, expected: Sequence[tuple[str, str, str]]) -> None:
    """Compares the problems with (end of the place, name, part of the text), in this order."""
    assert [problem.name for problem in dataset.problems] == [name for _, name, _ in expected]
    for problem, (place, _, words) in zip(dataset.problems, expected, strict=True):
        assert problem.place.endswith(place)
        assert words.lower() in problem.text.lower()
