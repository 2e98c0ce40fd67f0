"""Which record trains, validates or tests: split files and the default split.

A split file is UTF-8 text. Each line holds `train`, `val` or `test`, white space, and a name: that of
one record (`kos01/Part0`), or that of a group (`kos01`), which stands for all its records. Lines that
start with `#` and empty lines are skipped. Records that no line names are left out.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from datasets.sample import Dataset, Record, Split
from segdec.errors import DatasetError
from segdec.files import write_text_atomic
from segdec.suggestions import nearest

SPLITS: tuple[Split, ...] = get_args(Split)

VAL_FRACTION = 0.2
TEST_FRACTION = 0.2


def apply_splits(dataset: Dataset, path: Path) -> Dataset:
    """The same data set, assigned as the split file `path` says and in no other way.

    Raises:
        DatasetError: Naming file and line, when the file cannot be read or names nothing, a line is
            malformed, a name belongs to no record, or a record or group falls into two splits.
    """
    assigned: dict[str, tuple[Split, int]] = {}  # record name → split, line
    groups: dict[str, tuple[Split, int]] = {}
    by_name = _records_by_name(dataset.records)
    for line, split, name in _parse(path):
        for record in _named(by_name, name, f"{path}, line {line}"):
            for place, key, what in ((assigned, record.name, "photograph"), (groups, record.group, "group")):
                earlier = place.setdefault(key, (split, line))
                _check_agrees(earlier, split, f"{path}, line {line}", f"the {what} '{key}'")
    records = (r.assigned(assigned[r.name][0] if r.name in assigned else None) for r in dataset.records)
    return replace(dataset, records=tuple(records))


def default_split(dataset: Dataset, *, seed: int = 0) -> Dataset:
    """Assign 60 % of the groups of each class to train, 20 % to val and 20 % to test.

    A group counts for its highest label. Its place depends on the seed and the names of the groups
    alone, so the split is the same on every machine. Classes of fewer than three groups only train.
    """
    labels: dict[str, int] = defaultdict(int)
    for record in dataset.records:
        labels[record.group] = max(labels[record.group], record.label)
    splits: dict[str, Split] = {}
    for label in sorted(set(labels.values())):
        splits |= _cut([group for group in labels if labels[group] == label], seed)
    return replace(dataset, records=tuple(r.assigned(splits[r.group]) for r in dataset.records))


def write_splits(path: Path, records: Iterable[Record], *, comment: str = "") -> None:
    """Write one line for each record that has a split, atomically; `comment` goes on top."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f"{record.split:<5}  {record.name}" for record in records if record.split is not None]
    write_text_atomic(path, "\n".join([*lines, ""]))


def _parse(path: Path) -> list[tuple[int, Split, str]]:
    """Line number, split and name of each line that says something."""
    parsed = []
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        split, _, name = line.strip().replace("\t", " ").partition(" ")
        known = next((word for word in SPLITS if word == split), None)
        if known is None or not name:
            raise DatasetError(
                f"{path}, line {number}: '{line.strip()}' is not understood. "
                f"Expected one of {', '.join(SPLITS)}, then a name, for example: train  kos01"
            )
        parsed.append((number, known, name.strip()))
    if not parsed:
        raise DatasetError(f"{path} names no photograph. Expected lines such as: train  kos01")
    return parsed


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # spreadsheets put a byte order mark in front
    except FileNotFoundError:
        raise DatasetError(f"The split file {path} does not exist. Check the path.") from None
    except UnicodeDecodeError as error:
        raise DatasetError(f"The split file {path} is not UTF-8 text: {error}. Save it as text.") from error
    except OSError as error:
        raise DatasetError(f"The split file {path} cannot be read ({error.strerror}).") from error


def _records_by_name(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records by their own name and by that of their group."""
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        for name in {record.name, record.group}:
            found[name].append(record)
    return found


def _named(by_name: dict[str, list[Record]], name: str, where: str) -> list[Record]:
    if name in by_name:
        return by_name[name]
    raise DatasetError(
        f"{where}: no photograph and no group is named '{name}'. "
        f"Nearest known name: '{nearest(name, by_name)}'. Expected a name below the root without its suffix, "
        "alone on its line. Comments have lines of their own. If the name is right, the folder holds a part "
        "of the data set only."
    )


def _check_agrees(earlier: tuple[Split, int], split: Split, where: str, what: str) -> None:
    if earlier[0] != split:
        raise DatasetError(
            f"{where}: {what} is put into '{split}', line {earlier[1]} puts it into '{earlier[0]}'. "
            "Photographs of one group belong to one split: remove one of the two lines."
        )


def _cut(groups: list[str], seed: int) -> dict[str, Split]:
    """Shuffle groups of one class by a hash, then cut them into the three splits."""
    shuffled = sorted(groups, key=lambda group: hashlib.sha256(f"{seed}:{group}".encode()).digest())
    val, test = round(VAL_FRACTION * len(groups)), round(TEST_FRACTION * len(groups))
    place: dict[str, Split] = dict.fromkeys(shuffled, "train")
    place |= dict.fromkeys(shuffled[:val], "val")
    place |= dict.fromkeys(shuffled[val : val + test], "test")
    return place
