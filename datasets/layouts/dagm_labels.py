"""Reads the Labels.txt of DAGM 2007, which lists the defective photographs of a folder.

The first line holds the class number. Each other line has tab-separated fields: photograph number, 1 for
defective or 0 for good, photograph file, 0, and mask file or 0.
"""

from dataclasses import dataclass
from pathlib import Path

from datasets.sample import Problem
from datasets.text_file import read_text
from segdec.errors import DatasetError

FILE_NAME = "Labels.txt"

_FLAGS = {"0": False, "1": True}


@dataclass(frozen=True)
class LabelLine:
    """One line: file and line as `place`, and whether the photograph is defective."""

    place: str
    defective: bool


def read_labels(path: Path, prefix: str) -> tuple[dict[str, LabelLine] | None, list[Problem]]:
    """Reads the Labels.txt at `path`.

    Returns:
        Name of the record (`<prefix>/0576`) → line, or None if the file cannot be read; and the problems.
    """
    try:
        lines = read_text(path, "label").splitlines()
    except DatasetError as error:
        return None, [Problem(str(path), f"{error} Copy it from the published set.")]
    entries: dict[str, LabelLine] = {}
    problems = []
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            place = f"{path}, line {number}"
            name, entry = _parse(line, prefix, place)
            earlier = None if entry is None else entries.setdefault(name, entry)
            if entry is None or earlier != entry:
                problems.append(_refused(place, name, line, earlier))
    return entries, problems


def _parse(line: str, prefix: str, place: str) -> tuple[str, LabelLine | None]:
    """The name of the record, if there is one, and the parsed line, if it is valid."""
    fields = line.split()
    name = f"{prefix}/{fields[2].rpartition('.')[0]}" if len(fields) > 2 else ""
    defective = _FLAGS.get(fields[1]) if name else None
    return name, None if defective is None else LabelLine(place, defective)


def _refused(place: str, name: str, line: str, earlier: LabelLine | None) -> Problem:
    if earlier is not None:
        return Problem(place, f"The photograph is also in {earlier.place}. Remove one line.", name)
    return Problem(
        place,
        f"Invalid line '{line.strip()[:80]}'. Expected number, 0 or 1, photograph, 0, and mask or 0, "
        "separated by tabs. Copy the file again from the published set.",
        name,
    )
