"""Text files of lines `word name`: what split files and supervision files have in common.

A file is UTF-8 text. Each line holds a word, white space, and a name: that of one record
(`kos01/Part0`), that of a group (`kos01`), or that of a folder in which records lie (`scratch`); the
last two stand for all their records. Lines that start with `#` and empty lines are skipped.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from datasets.sample import Dataset, Record
from datasets.text_file import read_text
from segdec.errors import DatasetError
from segdec.runtime.suggestions import nearest_name

MAX_SUGGESTIONS = 10
"""For as many unknown names the nearest known one is told: of a whole set that would take minutes."""


@dataclass(frozen=True)
class NameLine:
    """One line that says something: `word` about the records of `name`; `place` is file and line."""

    word: str
    name: str
    line: int
    place: str


def read_name_list(path: Path, words: Sequence[str], what: str) -> list[NameLine]:
    """Reads the lines of `path`, at least one.

    Args:
        path: The file.
        words: Words that a line may start with.
        what: What the file is, for messages: `split` or `supervision`.

    Raises:
        DatasetError: If the file cannot be read or names nothing, and for all lines that start with
            another word or name nothing.
    """
    example = f"{words[0]}  kos01"
    found, wrong = [], []
    for number, line in enumerate(read_text(path, what).splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        place = f"{path}, line {number}"
        word, *name = line.strip().split(maxsplit=1)
        if word in words and name:
            found.append(NameLine(word, name[0], number, place))
        else:
            wrong.append(f"{place}: '{line.strip()}' is not understood.")
    if wrong:
        raise DatasetError(
            "\n".join(wrong) + f" Expected one of {', '.join(words)}, then a name, for example: {example}"
        )
    if not found:
        raise DatasetError(f"{path} names no photograph. Expected lines such as: {example}")
    return found


def records_of_lines(dataset: Dataset, lines: Sequence[NameLine]) -> list[tuple[NameLine, Record]]:
    """Returns each line with each of its records; a name of broken photographs alone stands for none.

    Raises:
        DatasetError: If a name belongs to no record and no problem of the data set; lists all of them.
    """
    by_name = records_by_name(dataset.records)
    known = known_names(dataset)
    if unknown := [line for line in lines if line.name not in known]:
        raise _unknown(unknown, known)
    return [(line, record) for line in lines for record in by_name.get(line.name, ())]


def known_names(dataset: Dataset) -> set[str]:
    """Returns all that a line may name: records, groups and folders, those of broken photographs too."""
    broken = {name for problem in dataset.problems for name in _with_folders(problem.name)}
    return broken | records_by_name(dataset.records).keys()


def nearest_known(name: str, known: Collection[str]) -> str:
    """Returns a sentence that names the one in `known` which looks most like `name`."""
    return f"Nearest known name: '{nearest_name(name, sorted(known))}'." if known else "No name is known."


def records_by_name(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Returns records by their own name, by that of their group, and by those of their folders."""
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        for name in {record.name, record.group}:
            found[name].append(record)
    folders: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        for name in _with_folders(record.name)[1:]:
            folders[name].append(record)
    return {**folders, **found}  # a group may be named as a folder is, and goes beyond it


def _with_folders(name: str) -> list[str]:
    """`a/b/c` and the folders it lies in: `a/b`, `a`; nothing for no name."""
    parts = name.split("/") if name else []
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _unknown(lines: Sequence[NameLine], known: Collection[str]) -> DatasetError:
    named = "\n".join(
        f"{line.place}: no photograph and no group is named '{line.name}'."
        + (f" {nearest_known(line.name, known)}" if place < MAX_SUGGESTIONS else "")
        for place, line in enumerate(lines)
    )
    return DatasetError(
        f"{named} Expected names below the root without their suffix, alone on their line. Comments have "
        "lines of their own. If the names are right, the folder holds a part of the data set only."
    )
