"""Text files with lines `word name`: the common format of split files and supervision files.

Each line of the UTF-8 file holds a word, white space, and the name of an item (`kos01/Part0`), a group
(`kos01`) or a folder of items (`scratch`); a group or folder means all its items. Empty lines and lines
that start with `#` are skipped.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from datasets.listing import composed
from datasets.sample import Dataset, DataSetItem
from datasets.text_file import read_text
from segdec.errors import DatasetError
from segdec.runtime.suggestions import nearest_name

MAX_SUGGESTIONS = 10
"""Unknown names that get a suggestion; for a whole data set this would take minutes."""


@dataclass(frozen=True)
class NameLine:
    """One line: its word, its name, its number, and file and line as `place`."""

    word: str
    name: str
    line: int
    place: str


def read_name_list(path: Path, words: Sequence[str], what: str) -> list[NameLine]:
    """Reads the lines of `path`, which start with one of `words`.

    `what` is the kind of file, for messages: `split` or `supervision`.

    Raises:
        DatasetError: If the file cannot be read, has no line with a name, or has invalid lines (lists all).
    """
    example = f"{words[0]}  kos01"
    lines, wrong = [], []
    for number, line in enumerate(read_text(path, what).splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        place = f"{path}, line {number}"
        word, *name = line.strip().split(maxsplit=1)
        if word in words and name:
            lines.append(NameLine(word, composed(name[0]), number, place))
        else:
            wrong.append(f"{place}: invalid line '{line.strip()}'.")
    if wrong:
        raise DatasetError(
            "\n".join(wrong) + f" Expected one of {', '.join(words)} and a name, for example: {example}"
        )
    if not lines:
        raise DatasetError(f"{path} has no line with a name. Expected lines such as: {example}")
    return lines


def items_of_lines(dataset: Dataset, lines: Sequence[NameLine]) -> list[tuple[NameLine, DataSetItem]]:
    """Returns each line with each of its items; photographs with problems have no item.

    Raises:
        DatasetError: If names are unknown; lists all of them.
    """
    by_name = items_by_name(dataset.items)
    known = known_names(dataset)
    if unknown := [line for line in lines if line.name not in known]:
        raise _unknown(unknown, known)
    return [(line, item) for line in lines for item in by_name.get(line.name, ())]


def known_names(dataset: Dataset) -> set[str]:
    """Returns the names of all items, groups and folders, also of photographs with problems."""
    broken = {name for problem in dataset.problems for name in _with_folders(problem.name)}
    return broken | items_by_name(dataset.items).keys()


def nearest_known(name: str, known: Collection[str]) -> str:
    """Returns a sentence with the known name that is most similar to `name`."""
    return f"Nearest known name: '{nearest_name(name, sorted(known))}'." if known else "No name is known."


def items_by_name(items: Sequence[DataSetItem]) -> dict[str, list[DataSetItem]]:
    """Returns name → items, for the names of items, groups and folders."""
    by_name: dict[str, list[DataSetItem]] = defaultdict(list)
    folders: dict[str, list[DataSetItem]] = defaultdict(list)
    for item in items:
        for name in {item.name, item.group}:
            by_name[name].append(item)
        for name in _with_folders(item.name)[1:]:
            folders[name].append(item)
    return {**folders, **by_name}  # a group has priority over a folder of the same name


def _with_folders(name: str) -> list[str]:
    """`a/b/c` and its folders: `a/b`, `a`; an empty list without a name."""
    parts = name.split("/") if name else []
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _unknown(lines: Sequence[NameLine], known: Collection[str]) -> DatasetError:
    named = "\n".join(
        f"{line.place}: no photograph or group is named '{line.name}'."
        + (f" {nearest_known(line.name, known)}" if number < MAX_SUGGESTIONS else "")
        for number, line in enumerate(lines)
    )
    return DatasetError(
        f"{named} Expected a path below the root without suffix, and comments on separate lines. If the "
        "names are correct, the folder holds only a part of the data set."
    )
