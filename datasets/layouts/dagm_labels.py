"""The Labels.txt of DAGM 2007: which photographs of a folder show a defect.

The first line holds the number of the class. Each other line has fields with tabs between: the number
of a photograph, 1 with a defect or 0 without, its file, 0, and the file of its mask or 0.
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
    """What one line says.

    Attributes:
        place: File and line, for messages.
        defective: Whether the photograph shows a defect.
    """

    place: str
    defective: bool


def read_labels(path: Path, prefix: str) -> tuple[dict[str, LabelLine] | None, list[Problem]]:
    """Reads the Labels.txt at `path`.

    Returns:
        Name of the record (`<prefix>/0576`) → entry, or None if the file cannot be read; and what is
        wrong with it.
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
    """Name of the record, where it can be told, and the entry, where the line is understood."""
    fields = line.split()
    name = f"{prefix}/{fields[2].rpartition('.')[0]}" if len(fields) > 2 else ""
    defective = _FLAGS.get(fields[1]) if name else None
    return name, None if defective is None else LabelLine(place, defective)


def _refused(place: str, name: str, line: str, earlier: LabelLine | None) -> Problem:
    if earlier is not None:
        return Problem(place, f"The photograph was named before: {earlier.place}. Remove one line.", name)
    return Problem(
        place,
        f"'{line.strip()[:80]}' is not understood. Expected a number, 0 or 1, the photograph, 0 and its mask "
        "or 0, with tabs between. Copy the file again from the published set.",
        name,
    )
