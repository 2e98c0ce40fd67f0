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

from dataclasses import replace
from pathlib import Path

from datasets.layouts.published_pairs import Found, build_dataset, pair_files, read_masks
from datasets.listing import subfolders
from datasets.sample import Dataset, DataSetItem, Split
from datasets.splitting import split_off_validation
from segdec.errors import DatasetError

CLASSES = ("good", "defect")

FOLDERS: dict[str, Split] = {"train": "train", "test": "test"}


def index(root: Path) -> Dataset:
    """Lists the photographs below `root`, named `train/10000`, each in its own group.

    The split is the published one, with 20 % of the training photographs of each class in val. The label is 1
    if the full-size mask holds a value above 0. Problems are photographs without a mask, masks without a
    photograph, and unreadable masks.

    Raises:
        DatasetError: If the root cannot be listed, or lacks photographs for training or testing.
    """
    subfolders(root)  # raises if this fails
    pairs: Found = []
    for name in FOLDERS:
        of_folder = pair_files(name, r"\d+", (root / name, ".png"), (root / name, "_GT.png"))
        if not of_folder:
            raise DatasetError(
                f"The folder {root} holds no KolektorSDD2 photographs for '{name}'. Expected "
                f"{root / name / '<number>.png'} and {root / name / '<number>_GT.png'}: give the folder of "
                f"{' and '.join(FOLDERS)}."
            )
        pairs += of_folder
    return split_off_validation(build_dataset(CLASSES, read_masks(pairs, _labelled)))


def _labelled(item: DataSetItem, marks_defect: bool) -> DataSetItem:
    return replace(item, label=int(marks_defect), split=FOLDERS[item.name.partition("/")[0]])
