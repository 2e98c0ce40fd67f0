"""Defective photographs without a mask."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from datasets.annotations.labels import GOOD
from datasets.causes import Cause
from datasets.layouts.class_folders import MASKS
from datasets.sample import Dataset, DataSetIssue, DataSetItem

SUPERVISION_FILE = "supervision.txt"


def without_unmasked(dataset: Dataset, root: Path) -> Dataset:
    """Turns defective photographs without a mask into problems, unless their supervision is `label`."""
    unmasked = [item for item in dataset.items if _is_unmasked(item)]
    number, of_folder = (
        Counter(folder for item in items for folder in _folders(item)) for items in (unmasked, dataset.items)
    )
    whole = {name for name in number if number[name] == of_folder[name]}
    folders = sorted({_line(item, whole) for item in unmasked} & whole)

    def check(item: DataSetItem) -> DataSetItem | DataSetIssue:
        if not _is_unmasked(item):
            return item
        line = _line(item, whole)
        lines = [f"'label  {name}'" for name in (folders if line in whole else [line])]
        text = (
            f"The photograph {item.image_file} is defective but has no mask. Draw "
            f"{root / MASKS / item.name}.png, move the photograph to '{GOOD}', or, to use the class alone, "
            f"add to {root / SUPERVISION_FILE}: {', '.join(lines)}."
        )
        return DataSetIssue(str(item.image_file), text, item.name, Cause("photograph_without_mask"))

    return dataset.with_items(map(check, dataset.items))


def _is_unmasked(item: DataSetItem) -> bool:
    return item.label > 0 and item.mask_file is None and item.supervision != "label"


def _line(item: DataSetItem, whole: Collection[str]) -> str:
    """The folder of a photograph if all photographs in and below it are unmasked, else its name."""
    folders = _folders(item)
    return folders[0] if folders and folders[0] in whole else item.name


def _folders(item: DataSetItem) -> list[str]:
    """The folders above a photograph below the root, the nearest first."""
    return [str(path) for path in PurePosixPath(item.name).parents][:-1]
