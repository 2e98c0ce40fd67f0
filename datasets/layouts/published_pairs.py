"""Common steps of published layouts: pair photographs and masks, read the masks, build the data set."""

import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from datasets.layouts.listing import files
from datasets.sample import Dataset, Problem, Record
from segdec.errors import ImageError
from segdec.images import read_mask

FilesOf = Callable[[str], Path]
"""Returns the path of a file in the published tree from the name of the record."""


@dataclass(frozen=True)
class PublishedPair:
    """A photograph and its mask.

    Attributes:
        name: Name of the record.
        photograph: The photograph.
        mask: The mask; None for a good photograph that needs none.
    """

    name: str
    photograph: Path
    mask: Path | None


def files_by_name(folder: Path, pattern: re.Pattern[str], prefix: str) -> dict[str, Path]:
    """Lists files in `folder` whose name matches `pattern`: `<prefix>/<first group>` → file."""
    matches = ((pattern.fullmatch(path.name), path) for path in files(folder))
    return {f"{prefix}/{match[1]}": path for match, path in matches if match}


def pair_files(
    photographs: Mapping[str, Path],
    masks: Mapping[str, Path],
    photograph_of: FilesOf,
    mask_of: FilesOf,
    *,
    mask_needed: bool = True,
) -> list[PublishedPair | Problem]:
    """Returns a pair for each name that has both files, and a problem for each name that has only one.

    Args:
        photographs: Name of the record → photograph.
        masks: Name of the record → mask.
        photograph_of: Returns the expected path of a photograph.
        mask_of: Returns the expected path of a mask.
        mask_needed: Whether a photograph without a mask is a problem.
    """
    found: list[PublishedPair | Problem] = []
    for name in sorted(photographs.keys() | masks.keys()):
        if name not in masks and mask_needed:
            found.append(_missing("mask", mask_of(name), "photograph", photographs[name], name))
        elif name not in photographs:
            found.append(_missing("photograph", photograph_of(name), "mask", masks[name], name))
        else:
            found.append(PublishedPair(name, photographs[name], masks.get(name)))
    return found


def _missing(what: str, expected: Path, other: str, path: Path, name: str) -> Problem:
    text = f"The {other} has no {what}. Expected {expected}: copy it from the published set, or remove the"
    return Problem(str(path), f"{text} {other}.", name)


def read_masks(
    pairs: Iterable[PublishedPair | Problem],
    record: Callable[[PublishedPair, bool], Record | Problem],
    *,
    threshold: int = 0,
) -> list[Record | Problem]:
    """Reads the masks of pairs in parallel and creates the records.

    Args:
        pairs: Pairs and problems; problems are returned unchanged.
        record: Creates the record of a pair; the second argument is whether its mask marks a defect.
        threshold: A mask pixel is defective if its value is above this.
    """

    def read(found: PublishedPair | Problem) -> Record | Problem:
        if isinstance(found, Problem):
            return found
        if found.mask is None:
            return record(found, False)
        try:
            marks_defect = bool(read_mask(found.mask, threshold=threshold).any())
        except ImageError as error:
            return Problem(str(found.mask), str(error), found.name)
        return record(found, marks_defect)

    with ThreadPoolExecutor() as pool:
        return list(pool.map(read, pairs))


def build_dataset(classes: tuple[str, ...], found: Iterable[Record | Problem]) -> Dataset:
    """Builds the sorted data set without the records that are named in a problem."""
    records: list[Record] = []
    problems: list[Problem] = []
    for entry in found:
        if isinstance(entry, Record):
            records.append(entry)
        else:
            problems.append(entry)
    broken = {problem.name for problem in problems}
    records.sort(key=lambda record: record.name)
    problems.sort(key=lambda problem: problem.place)
    return Dataset(classes, tuple(r for r in records if r.name not in broken), tuple(problems))
