"""Assigns items to train, val and test: split files and the default split.

Each line of a split file holds `train`, `val` or `test` and the name of an item, a group or a folder; see
`datasets.name_lists`. `fold_1` to `fold_10` instead of `train` also assign a fold. Items without a line are
ignored.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import get_args

from datasets.name_lists import NameLine, items_of_lines, read_name_list
from datasets.problems import list_names
from datasets.sample import Dataset, DataSetItem, Split
from segdec.errors import DatasetError
from segdec.runtime.files import write_text_atomic

SPLITS: tuple[Split, ...] = get_args(Split)
SPLITS_FILE = "splits.txt"

MAX_FOLDS = 10
SPLIT_WORDS: dict[str, tuple[Split, int | None]] = {
    **{split: (split, None) for split in SPLITS},
    **{f"fold_{number}": ("train", number) for number in range(1, MAX_FOLDS + 1)},
}
"""First words of the lines of a split file: their split and fold."""

SPLIT_FOLDERS: dict[str, Split] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""Names of folders and files → split."""

NEW_SPLIT_NOTE = (
    "Folders or annotation files assign {assigned} of {count} photographs to splits. All were split anew: "
    "60 % train, 20 % val and 20 % test. To keep a split, it must assign most photographs, and good and "
    "defective ones to train and to another split."
)

VAL_FRACTION = 0.2
TEST_FRACTION = 0.2


class SplitFileError(DatasetError):
    """The file `splits.txt` in the folder of a data set is invalid.

    Attributes:
        unsplit: The data set without a split.
    """

    def __init__(self, text: str, unsplit: Dataset) -> None:
        super().__init__(text)
        self.unsplit = unsplit


def split_of_folder(name: str) -> Split | None:
    """Returns the split that the name of a folder states, in any case; None if it states none."""
    return SPLIT_FOLDERS.get(name.lower())


def assign_splits(dataset: Dataset, folder: Path) -> Dataset:
    """Returns the data set with the splits of `splits.txt` in `folder`, or else with the default split.

    If any item has a split from its annotation, nothing changes.

    Raises:
        SplitFileError: If `splits.txt` is invalid.
    """
    if any(item.split for item in dataset.items):
        return dataset
    return apply_split_file(dataset, folder) if has_split_file(folder) else default_split(dataset)


def assign_own_splits(dataset: Dataset, folder: Path) -> Dataset:
    """Returns the data set with the splits of `splits.txt` in `folder`, its own, or the default split.

    Its own split is used if at least half of the photographs have one, and if train and another split have
    good photographs and, if there are any, defective ones. Without val, a fifth of train becomes val.

    Raises:
        SplitFileError: If `splits.txt` is invalid.
    """
    if has_split_file(folder):
        return apply_split_file(dataset, folder)
    unassigned = [item.name for item in dataset.items if item.split is None]
    kinds = {(item.split, item.label > 0) for item in dataset.items}
    needed = {defective for _, defective in kinds}
    complete = {split for split in SPLITS if needed <= {kind for each, kind in kinds if each == split}}
    count = len(dataset.items)
    if 2 * len(unassigned) <= count and "train" in complete and len(complete) > 1:
        note = f"Photographs without a split: {list_names(unassigned)}, left out."
        dataset = replace(dataset, notes=(*dataset.notes, *[note] * bool(unassigned)))
        return dataset if dataset.of_split("val") else split_off_validation(dataset)
    renewed = default_split(dataset)
    if len(unassigned) == count:
        return renewed
    note = NEW_SPLIT_NOTE.format(assigned=count - len(unassigned), count=count)
    return replace(renewed, notes=(*renewed.notes, note))


def has_split_file(folder: Path) -> bool:
    """Returns whether `folder` has a file `splits.txt`."""
    return (folder / SPLITS_FILE).exists()


def apply_split_file(dataset: Dataset, folder: Path) -> Dataset:
    """Returns the data set with the splits of `splits.txt` in `folder`, which replace all earlier ones.

    Raises:
        SplitFileError: If `splits.txt` is invalid, see `apply_splits`.
    """
    try:
        return apply_splits(dataset, folder / SPLITS_FILE)
    except DatasetError as error:
        raise SplitFileError(str(error), without_split(dataset)) from error


def has_own_split(dataset: Dataset, root: Path) -> bool:
    """Returns whether the data set of the folder or file `root` has a split other than the default one."""
    if not any(item.split for item in dataset.items):
        return False
    folder = root if root.is_dir() else root.parent
    if has_split_file(folder):
        with suppress(SplitFileError):  # a published layout is read without an invalid one
            apply_split_file(dataset, folder)
            return True
    return [item.split for item in default_split(dataset).items] != [r.split for r in dataset.items]


def without_split(dataset: Dataset) -> Dataset:
    """Returns the data set without any split."""
    return replace(dataset, items=tuple(item.with_split(None) for item in dataset.items))


def read_split_lines(path: Path) -> list[NameLine]:
    """Reads the lines of a split file; raises a DatasetError if one is invalid."""
    return read_name_list(path, tuple(SPLIT_WORDS), "split")


def apply_splits(dataset: Dataset, path: Path) -> Dataset:
    """Returns the data set with the splits of the split file `path`, which replace all earlier ones.

    Raises:
        DatasetError: If the file cannot be read, a line is invalid, a name is unknown, or an item or group
            is in two splits; names file and line.
    """
    assigned: dict[str, NameLine] = {}
    groups: dict[str, NameLine] = {}
    for line, item in items_of_lines(dataset, read_split_lines(path)):
        _check_agrees(assigned.setdefault(item.name, line), line, f"the photograph '{item.name}'")
        _check_agrees(groups.setdefault(item.group, line), line, f"the group '{item.group}'")
    items = (
        r.with_split(*SPLIT_WORDS[assigned[r.name].word]) if r.name in assigned else r.with_split(None)
        for r in dataset.items
    )
    return replace(dataset, items=tuple(items))


def default_split(dataset: Dataset, *, seed: int = 0) -> Dataset:
    """Assigns 60 % of the groups of each class to train, 20 % to val and 20 % to test.

    The class of a group is its highest label. The result depends only on the seed and the group names, so it
    is the same on every machine. Classes of fewer than three groups are in train only.
    """
    labels: dict[str, int] = defaultdict(int)
    for item in dataset.items:
        labels[item.group] = max(labels[item.group], item.label)
    splits: dict[str, Split] = {}
    for label in sorted(set(labels.values())):
        splits |= _cut([group for group in labels if labels[group] == label], seed)
    return replace(dataset, items=tuple(r.with_split(splits[r.group]) for r in dataset.items))


def split_off_validation(dataset: Dataset) -> Dataset:
    """Moves 20 % of the training groups of each class to val, for sets published without validation."""
    training = replace(dataset, items=dataset.of_split("train"))
    val = {item.group for item in default_split(training).of_split("val")}
    moved = (r.with_split("val") if r.split == "train" and r.group in val else r for r in dataset.items)
    return replace(dataset, items=tuple(moved))


def write_splits(path: Path, items: Iterable[DataSetItem], *, comment: str = "") -> None:
    """Writes one line for each item with a split, below the lines of `comment`; atomic."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f"{item.split_word:<5}  {item.name}" for item in items if item.split is not None]
    write_text_atomic(path, "\n".join([*lines, ""]))


def _check_agrees(earlier: NameLine, line: NameLine, what: str) -> None:
    if earlier.word != line.word:
        raise DatasetError(
            f"{line.place}: {what} is assigned to '{line.word}', in line {earlier.line} to '{earlier.word}'. "
            "All photographs of a group belong to one split: remove one of the two lines."
        )


def _cut(groups: list[str], seed: int) -> dict[str, Split]:
    """Shuffles groups of one class by a hash, then cuts them into the three splits."""
    shuffled = sorted(groups, key=lambda group: _hash(group, seed))
    val, test = round(VAL_FRACTION * len(groups)), round(TEST_FRACTION * len(groups))
    splits: dict[str, Split] = dict.fromkeys(shuffled, "train")
    splits |= dict.fromkeys(shuffled[:val], "val")
    splits |= dict.fromkeys(shuffled[val : val + test], "test")
    return splits


def _hash(group: str, seed: int) -> bytes:
    # File names may hold bytes that are not UTF-8; `datasets.loading` reports them later.
    return hashlib.sha256(f"{seed}:{group}".encode(errors="surrogateescape")).digest()
