"""One category of MVTec AD in its native layout.

    root/train/good/000.png                          good photographs, grey or colour
    root/test/good/000.png
    root/test/broken_large/000.png                   one folder for each class of defect
    root/ground_truth/broken_large/000_mask.png      its mask

The categories (bottle, cable, …) are separate inspection tasks with separate classes: the root is the folder
of one category. Files with other names are ignored.

The published split trains without defects, from which a supervised network cannot learn. The default split of
all photographs is used instead: 60 % train, 20 % val and 20 % test of each class. Results are therefore not
comparable with methods that train on good photographs alone.

Reference:
    P. Bergmann, M. Fauser, D. Sattlegger, C. Steger, MVTec AD: a comprehensive real-world dataset for
    unsupervised anomaly detection, Conference on Computer Vision and Pattern Recognition, 2019.
"""

from dataclasses import replace
from pathlib import Path

from datasets.layouts.listing import files, subfolders
from datasets.layouts.published_pairs import Found, build_dataset, pair_files
from datasets.sample import Dataset, Problem, Record
from datasets.splitting import default_split
from segdec.errors import DatasetError

GOOD = "good"

_TRAIN = "train"
_TEST = "test"
_MASKS = "ground_truth"


def index(root: Path) -> Dataset:
    """Lists the photographs below `root`, named `test/broken_large/000`, each in its own group.

    The classes are `good` and the sorted folders of defects. Problems are photographs without a mask, masks
    without a photograph, and defective photographs below `train`.

    Raises:
        DatasetError: If the root cannot be listed, is not a category, or holds several.
    """
    if not _is_category(root):
        raise _no_category(root)
    defects = [name for name in _below(root / _TEST) if name != GOOD]
    found: Found = [*_good(root, f"{_TRAIN}/{GOOD}"), *_good(root, f"{_TEST}/{GOOD}"), *_misplaced(root)]
    for name in {*defects, *_below(root / _MASKS)} - {GOOD}:
        found += _defective(root, name, defects)
    if not found:
        example = root / _TRAIN / GOOD / "000.png"
        raise DatasetError(f"The folder {root} holds no photograph. Expected {example} and so on.")
    return default_split(build_dataset((GOOD, *defects), found))


def _is_category(folder: Path) -> bool:
    return GOOD in _below(folder / _TRAIN) and _exists(folder / _TEST)


def _no_category(root: Path) -> DatasetError:
    categories = [folder for folder in subfolders(root) if _is_category(folder)]
    if categories:
        names = ", ".join(folder.name for folder in categories)
        return DatasetError(
            f"The folder {root} holds several categories of MVTec AD: {names}. Give the folder of one, for "
            f"example {categories[0]}."
        )
    return DatasetError(
        f"The folder {root} is not a category of MVTec AD. Expected {root / _TRAIN / GOOD}, {root / _TEST} "
        f"and {root / _MASKS}: give the folder of one category, for example bottle."
    )


def _below(folder: Path) -> list[str]:
    """Sorted names of the folders in `folder`; empty if it does not exist."""
    return [path.name for path in subfolders(folder)] if _exists(folder) else []


def _exists(folder: Path) -> bool:
    """Whether `folder` exists; unlike `is_dir`, raises DatasetError if its parent cannot be listed."""
    return folder in subfolders(folder.parent)


def _good(root: Path, name: str) -> list[Record]:
    if not (root / name).is_dir():
        return []
    photographs = [path for path in files(root / name) if path.suffix == ".png"]
    return [Record(f"{name}/{p.stem}", p, None, label=0, group=f"{name}/{p.stem}") for p in photographs]


def _defective(root: Path, class_name: str, defects: list[str]) -> Found:
    prefix = f"{_TEST}/{class_name}"
    masks = root / _MASKS / class_name
    found = pair_files(prefix, ".+", (root / prefix, ".png"), (masks, "_mask.png"))
    return [
        replace(entry, label=defects.index(class_name) + 1) if isinstance(entry, Record) else entry
        for entry in found
    ]


def _misplaced(root: Path) -> list[Problem]:
    """A problem for each other folder in `train`."""
    text = f"Expected only '{GOOD}' here. Move defective photographs to {root / _TEST}, with masks."
    return [Problem(str(root / _TRAIN / name), text) for name in _below(root / _TRAIN) if name != GOOD]
