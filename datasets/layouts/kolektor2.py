"""KolektorSDD2 in its native layout: 2331 photographs for training (246 defective), 1004 for testing (110).

    root/train/10000.png        colour, about 230×630 pixels
    root/train/10000_GT.png     its mask; empty for a good photograph
    root/test/20000.png
    root/test/20000_GT.png

Files with other names are ignored. docs/datasets.md shows how to use the published splits with fewer masks.

Reference:
    J. Božič, D. Tabernik, D. Skočaj, Mixed supervision for surface-defect detection: from weakly to
    fully supervised learning, Computers in Industry, 2021.
"""

import re
from pathlib import Path

from datasets.layouts.listing import subfolders
from datasets.layouts.published_pairs import (
    PublishedPair,
    build_dataset,
    files_by_name,
    pair_files,
    read_masks,
)
from datasets.sample import Dataset, Problem, Record, Split
from datasets.splitting import split_off_validation
from segdec.errors import DatasetError

CLASSES = ("good", "defect")

FOLDERS: dict[str, Split] = {"train": "train", "test": "test"}

_PHOTOGRAPH = re.compile(r"(\d+)\.png")
_MASK = re.compile(r"(\d+)_GT\.png")


def index(root: Path) -> Dataset:
    """Lists the photographs below `root`, named `train/10000`, each in its own group.

    The split is the published one, with 20 % of the training photographs of each class in val. The label is 1
    if the full-size mask holds a value above 0. Problems are photographs without a mask, masks without a
    photograph, and unreadable masks.

    Raises:
        DatasetError: If the root cannot be listed, or lacks photographs for training or testing.
    """
    present = {folder.name for folder in subfolders(root)}
    pairs = []
    for name in FOLDERS:
        found = _pairs(root / name) if name in present else []
        if not found:
            raise DatasetError(
                f"The folder {root} holds no KolektorSDD2 photographs for '{name}'. Expected "
                f"{root / name / '<number>.png'} and {root / name / '<number>_GT.png'}: give the folder of "
                f"{' and '.join(FOLDERS)}."
            )
        pairs += found
    return split_off_validation(build_dataset(CLASSES, read_masks(pairs, _record)))


def _pairs(folder: Path) -> list[PublishedPair | Problem]:
    root = folder.parent
    return pair_files(
        files_by_name(folder, _PHOTOGRAPH, folder.name),
        files_by_name(folder, _MASK, folder.name),
        lambda name: root / f"{name}.png",
        lambda name: root / f"{name}_GT.png",
    )


def _record(found: PublishedPair, marks_defect: bool) -> Record:
    split = FOLDERS[found.name.partition("/")[0]]
    return Record(
        found.name,
        found.photograph,
        found.mask,
        label=int(marks_defect),
        group=found.name,
        split=split,
        mask_threshold=0,
    )
