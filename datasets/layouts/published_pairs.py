"""What the published layouts share: photographs and masks paired by name, records and problems sorted."""

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
"""Where a file lies in the published tree, by the name of the record."""


@dataclass(frozen=True)
class PublishedPair:
    """A photograph and its mask.

    Attributes:
        name: Of the record.
        photograph: The photograph.
        mask: The mask; None where a good photograph needs none.
    """

    name: str
    photograph: Path
    mask: Path | None


def files_by_name(folder: Path, pattern: re.Pattern[str], prefix: str) -> dict[str, Path]:
    """Lists files in `folder` whose whole name fits `pattern`: `<prefix>/<its first group>` → file."""
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
    """Makes one pair for each name that has both files, one problem for each that has half.

    Args:
        photographs: Name of the record → file.
        masks: The same for the masks.
        photograph_of: Where the photograph of a name is expected.
        mask_of: Where the mask of a name is expected.
        mask_needed: Whether a photograph without a mask is a problem; else its pair has none.
    """
    found: list[PublishedPair | Problem] = []
    for name in sorted(photographs.keys() | masks.keys()):
        if name not in masks and mask_needed:
            found.append(missing_mask(photographs[name], mask_of(name), name))
        elif name not in photographs:
            found.append(missing_photograph(masks[name], photograph_of(name), name))
        else:
            found.append(PublishedPair(name, photographs[name], masks.get(name)))
    return found


def missing_mask(photograph: Path, expected: Path, name: str) -> Problem:
    """Returns the problem of a photograph that should have a mask and has none."""
    return Problem(
        str(photograph),
        f"The photograph has no mask. Expected {expected}: copy it from the published set, or remove the "
        "photograph.",
        name,
    )


def missing_photograph(mask: Path, expected: Path, name: str) -> Problem:
    """Returns the problem of a mask that belongs to no photograph."""
    return Problem(
        str(mask),
        f"The mask has no photograph. Expected {expected}: copy it from the published set, or remove the "
        "mask.",
        name,
    )


def read_masks(
    pairs: Iterable[PublishedPair | Problem],
    record: Callable[[PublishedPair, bool], Record | Problem],
    *,
    threshold: int = 0,
) -> list[Record | Problem]:
    """Turns pairs into records by what their masks show; several masks are read at a time.

    Args:
        pairs: What was paired; problems are passed on.
        record: Makes the record of a pair, given whether its mask marks a defect.
        threshold: A mask pixel shows a defect where its value is above this.
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
    """Returns the data set of what was found, sorted; a record of the name of a problem is left out."""
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
