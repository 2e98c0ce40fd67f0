"""Describes the problems of a data set: one message for each cause."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path, PurePath

from datasets.sample import Dataset, DataSetIssue
from segdec.errors import DatasetError
from segdec.runtime.files import write_text_atomic

EXAMPLES = 3
"""Problems of one cause that a message names."""

LIST_FILE = Path("problems.txt")
"""File for all problems if a message does not name all."""

_NUMBER = re.compile(r"\d+([.,]\d+)*")
_PATH = re.compile(r"\S*[/\\]\S*")


def raise_if_problems(dataset: Dataset) -> None:
    """Raises one DatasetError that describes all problems of the data set, if there are any."""
    if dataset.problems:
        raise DatasetError(describe_problems(dataset.problems))


def describe_problems(problems: Sequence[DataSetIssue]) -> str:
    """Returns the number of problems, a text for each cause with its first problems, and what to do.

    Writes all problems to `LIST_FILE` if the text does not name all.
    """
    many = len(problems) != 1
    lines = "".join(f"  {text}\n" for text in describe_causes(problems))
    return (
        f"The data set has {len(problems)} problem{'s' * many}:\n{lines}{_list_all(problems)}"
        f"Repair {'them' if many else 'it'}, or leave out these photographs with --data.skip-broken (python "
        "-m training run) or --skip-broken (python -m training fit, python -m datasets pack, split, convert)."
    )


def describe_causes(problems: Sequence[DataSetIssue]) -> list[str]:
    """Returns a text for each cause: its first problem, the number of others and the names of two."""
    return [_describe_cause(same) for same in _by_cause(problems)]


def format_problem(problem: DataSetIssue) -> str:
    """Returns one line that names the location once; escapes bytes in file names that are not UTF-8."""
    text, place = " ".join(problem.text.split()), " ".join(problem.place.split())
    line = text if place in text else f"{place}: {text}"
    return line.encode(errors="backslashreplace").decode()


def write_problems(path: Path, dataset: Dataset) -> None:
    """Writes problems and dropped shapes as JSON lines: place, text, name, cause and left_out."""
    issues = [*((each, True) for each in dataset.problems), *((each, False) for each in dataset.dropped)]
    lines = (json.dumps({**asdict(problem), "left_out": left_out}) + "\n" for problem, left_out in issues)
    write_text_atomic(path, "".join(lines))


def _by_cause(problems: Sequence[DataSetIssue]) -> list[list[DataSetIssue]]:
    causes: dict[str, list[DataSetIssue]] = defaultdict(list)
    for problem in problems:
        causes[_cause(problem)].append(problem)
    return list(causes.values())


def list_names(names: Sequence[str], most: int = EXAMPLES) -> str:
    """Returns the number of the names and the first ones, at most `most`."""
    listed = ", ".join(names[:most]) + (", …" if len(names) > most else "")
    return f"{len(names)} ({listed})"


def _describe_cause(problems: Sequence[DataSetIssue]) -> str:
    first = format_problem(problems[0])
    if len(problems) == 1:
        return first
    others = [each.name or each.place for each in problems[1:EXAMPLES]]
    listed = ", ".join(others) + (" …" if len(problems) > EXAMPLES else "")
    more = f"{first} And {len(problems) - 1} more with this problem: {listed}"
    return more.encode(errors="backslashreplace").decode()


def _cause(problem: DataSetIssue) -> str:
    """The text without what differs between problems of one cause: names, paths and numbers."""
    text = problem.text
    for name in sorted(_names(problem), key=len, reverse=True):
        text = text.replace(name, "")
    return _NUMBER.sub("", _PATH.sub("", text))


def _names(problem: DataSetIssue) -> Iterator[str]:
    for name in (problem.place, problem.name):
        path = PurePath(name)
        yield from (part for part in (name, path.name, path.stem) if len(part) > 1)


def _list_all(problems: Sequence[DataSetIssue]) -> str:
    if max(map(len, _by_cause(problems))) <= EXAMPLES:
        return ""
    try:
        write_text_atomic(LIST_FILE, "".join(f"{format_problem(problem)}\n" for problem in problems))
    except OSError:
        return ""
    return f"All problems: {LIST_FILE}\n"
