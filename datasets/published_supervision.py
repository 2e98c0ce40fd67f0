"""The published splits of mixed supervision as supervision files: which photographs have a mask.

    split_16.pyb         KolektorSDD2, 16 masks: a pickle of (train, test)
    split_33_5.pyb       KolektorSDD, 33 defective photographs, 5 masks: of (train, test), each by fold
    split_15.pyb         DAGM, 15 masks: of (train, test), each by class
    split_3000_150.pyb   Severstal, 3000 defective photographs, 150 masks: of (train, test, val)

Each list holds pairs: the name or the number of a photograph, and whether its mask is to be used.

Reference:
    J. Božič, D. Tabernik, D. Skočaj, Mixed supervision for surface-defect detection: from weakly to
    fully supervised learning, Computers in Industry, 2021.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard, cast

from datasets.published_pickle import read_pickle
from datasets.sample import Dataset, Record, Split
from datasets.splitting import split_off_validation, write_splits
from segdec.errors import DatasetError
from segdec.runtime.files import write_text_atomic

LISTS: tuple[Split, ...] = ("train", "test", "val")
"""What a published file holds, in its order; the last one is not always there."""

SUFFIXES = frozenset({".png", ".jpg", ".bmp"})
MAX_NUMBER = 10**9

Published = dict[Split, list[tuple[str, bool]]]
"""The lists of one file: names of photographs, and whether their masks are to be used."""

Listed = dict[Split, list[tuple[Record, bool]]]
"""The same with the records of these names."""


@dataclass(frozen=True)
class Conversion:
    """What was written.

    Attributes:
        masks: Names of the defective photographs whose masks are to be used.
        labels: Names of those of which the class alone is to be known.
        unlisted: Names of other defective photographs that do not test: the published file leaves them out.
    """

    masks: tuple[str, ...]
    labels: tuple[str, ...]
    unlisted: tuple[str, ...]


def convert(
    path: Path, out: Path, dataset: Dataset, *, part: int | None = None, splits: Path | None = None
) -> Conversion:
    """Writes the supervision file `out` for the published split `path`.

    Each defective photograph to train or to validate becomes a line `mask  train/10000` or
    `label  train/10000`. Good ones become none: their class tells all their pixels.

    Args:
        path: The published file.
        out: The supervision file; one that is there is replaced.
        dataset: The data set that it belongs to, with the names that the supervision file is to use.
        part: Which fold or class, counted from 0, where the file holds several.
        splits: Also write this split file, of the photographs that the published file lists. 20 % of
            those to train validate, unless it lists others for that.

    Raises:
        DatasetError: If the file is no published split, a name in it belongs to no photograph or to
            several, or a file cannot be written.
    """
    finder = _Finder(dataset)
    listed = {
        split: finder.find(entries, split, path) for split, entries in read_published(path, part).items()
    }
    result = _conversion(dataset, listed)
    if not result.masks + result.labels:
        raise DatasetError(
            f"{path} names no defective photograph to train with. Check that it is of this set."
        )
    try:
        write_text_atomic(out, _text(result, path))
        if splits is not None:
            write_splits(splits, _assigned(dataset, listed), comment=f"the photographs in {path.name}")
    except OSError as error:
        raise DatasetError(f"The file cannot be written ({error}). Choose another place.") from error
    return result


def read_published(path: Path, part: int | None = None) -> Published:
    """Reads a published split file; its lists `train`, `test` and, in some, `val`.

    Args:
        path: The file.
        part: Which fold or class, counted from 0, where the file holds several.

    Raises:
        DatasetError: If the file is no published split, or `part` is missing, too much or too large.
    """
    content = read_pickle(path)
    lists = content if _is_list(content) else ()
    if not 2 <= len(lists) <= len(LISTS):
        raise _unlike(path, "Expected two or three lists: to train, to test, to validate.")
    return {
        split: [_entry(entry, path) for entry in _chosen(found, part, path)]
        for split, found in zip(LISTS, lists, strict=False)
    }


class _Finder:
    """Finds the record of a published name, which is the end of the record's name, or its number."""

    def __init__(self, dataset: Dataset) -> None:
        self._records: dict[str, list[Record]] = defaultdict(list)
        for record in dataset.records:
            for end in _ends(record.name):
                self._records[end].append(record)
        self._broken = {end for problem in dataset.problems for end in _ends(problem.name)}

    def find(
        self, entries: Iterable[tuple[str, bool]], split: Split, path: Path
    ) -> list[tuple[Record, bool]]:
        """The records of `entries`; photographs with a problem are passed over."""
        found, unknown = [], []
        for name, used in entries:
            record = self._find(name, split)
            if record is not None:
                found.append((record, used))
            elif name not in self._broken:
                unknown.append(name)
        if unknown:
            raise DatasetError(
                f"{path}: of the names to {split}, {len(unknown)} belong to no photograph or to several, "
                f"such as '{unknown[0][:80]}'. Expected the whole of the data set that the file was made "
                "for, of DAGM the folder of one class."
            )
        return found

    def _find(self, name: str, split: Split) -> Record | None:
        """The one record of this name; of several, the one on the same side of the split."""
        found = self._records.get(name, [])
        if len(found) > 1:
            found = [record for record in found if (record.split == "test") == (split == "test")]
        return found[0] if len(found) == 1 else None


def _ends(name: str) -> set[str]:
    """`Train/0576` → itself, `0576` and `576`."""
    parts = name.split("/")
    ends = {"/".join(parts[start:]) for start in range(len(parts))}
    return ends | {str(int(parts[-1]))} if parts[-1].isdecimal() else ends


def _chosen(found: object, part: int | None, path: Path) -> Sequence[object]:
    """The list of entries: `found` itself, or its part where it holds several lists."""
    if not _is_list(found):
        raise _unlike(path, "Expected lists.")
    several = bool(found) and all(_is_list(entry) and all(map(_is_list, entry)) for entry in found)
    if several == (part is None):
        raise DatasetError(
            f"{path} holds {f'{len(found)} folds or classes' if several else 'one split'}. "
            f"{f'Give the number of one, 0 to {len(found) - 1}' if several else 'Give no number of a part'}."
        )
    if part is None:
        return found
    if not 0 <= part < len(found):
        raise DatasetError(f"{path} holds no part {part}. Expected a number from 0 to {len(found) - 1}.")
    return cast(Sequence[object], found[part])


def _entry(entry: object, path: Path) -> tuple[str, bool]:
    if not _is_entry(entry):
        raise _unlike(path, "Expected pairs of a name or number and True or False.")
    name, used = cast(tuple[str | int, bool], entry)
    suffix = Path(str(name)).suffix
    return str(name).removesuffix(suffix if suffix.lower() in SUFFIXES else ""), used


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _is_entry(value: object) -> bool:
    return (
        _is_list(value)
        and len(value) == 2
        and isinstance(value[1], bool)
        and (isinstance(value[0], str) or (type(value[0]) is int and 0 <= value[0] < MAX_NUMBER))
    )


def _unlike(path: Path, expected: str) -> DatasetError:
    return DatasetError(f"{path} is no published split. {expected} Download it again, or check the path.")


def _conversion(dataset: Dataset, listed: Listed) -> Conversion:
    learnt = [entry for split, entries in listed.items() if split != "test" for entry in entries]
    defective = {record.name: used for record, used in learnt if record.label > 0}
    known = {record.name for entries in listed.values() for record, _ in entries}
    return Conversion(
        masks=tuple(sorted(name for name, used in defective.items() if used)),
        labels=tuple(sorted(name for name, used in defective.items() if not used)),
        unlisted=tuple(
            r.name for r in dataset.records if r.label > 0 and r.split != "test" and r.name not in known
        ),
    )


def _text(result: Conversion, path: Path) -> str:
    lines = [f"# {path.name}: {len(result.masks)} masks, {len(result.labels)} labels alone"]
    lines += [f"mask   {name}" for name in result.masks]
    lines += [f"label  {name}" for name in result.labels]
    return "\n".join([*lines, ""])


def _assigned(dataset: Dataset, listed: Listed) -> Sequence[Record]:
    """The listed records in their splits, in the order of their names."""
    splits = {record.name: split for split, entries in listed.items() for record, _ in entries}
    assigned = replace(dataset, records=tuple(r.with_split(splits.get(r.name)) for r in dataset.records))
    return (assigned if "val" in listed else split_off_validation(assigned)).records
