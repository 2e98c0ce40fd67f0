"""DAGM 2007 in its native layout: ten classes of synthetic texture, each a separate inspection task.

    root/Class1/Train/0576.PNG                  grey, 512×512 pixels
    root/Class1/Train/Label/0577_label.PNG      an ellipse around the defect, where there is one
    root/Class1/Train/Label/Labels.txt          the class number, then a line for each photograph:
                                                number, 0 or 1 (defect), photograph, 0, mask or 0
    root/Class1/Test/…                          the same

The root is the folder of all classes or of one class (`root/Class1`). Classes 1 to 6 have 575 photographs for
training and 575 for testing, classes 7 to 10 have 1150. A photograph is defective if it has a mask;
Labels.txt must agree. The masks are ellipses around the defects.

Files and folders with other names are ignored.

Reference:
    M. Wieler, T. Hahn, Weakly supervised learning for industrial optical inspection, 29th Annual
    Symposium of the German Association for Pattern Recognition, 2007.
"""

import re
from dataclasses import replace
from pathlib import Path

from datasets.layouts.published_pairs import Found, build_dataset, pair_files
from datasets.listing import subfolders
from datasets.sample import Dataset, DataSetIssue, DataSetItem, Split
from datasets.splitting import split_off_validation
from datasets.text_file import read_text
from segdec.errors import DatasetError

CLASSES = ("good", "defect")

FOLDERS: dict[str, Split] = {"Train": "train", "Test": "test"}

LABELS = "Label"
_LABELS_FILE = "Labels.txt"
_LABEL_LINE = re.compile(r"\s*\d+\s+([01])\s+(\d+)\.PNG\b")


def index(root: Path) -> Dataset:
    """Lists the photographs below `root`, named `Class1/Train/0576`, each in its own group.

    The split is the published one, with 20 % of the training photographs of each class in val. Problems are
    masks without a photograph, photographs that Labels.txt contradicts or does not list, and a missing folder
    or Labels.txt.

    Raises:
        DatasetError: If the root cannot be listed, or holds neither Train and Test nor Class1 and so on.
    """
    folders = subfolders(root)
    if any(folder.name in FOLDERS for folder in folders):
        entries = _of_class(root, "")
    else:
        classes = [folder for folder in folders if re.fullmatch(r"Class\d+", folder.name)]
        entries = [entry for folder in classes for entry in _of_class(folder, f"{folder.name}/")]
    if not entries:
        raise DatasetError(
            f"The folder {root} holds no DAGM photographs. Expected {root / 'Class1' / 'Train' / '0001.PNG'} "
            f"or {root / 'Train' / '0001.PNG'} and so on: give the folder of one class, or the folder of "
            "Class1, Class2, …"
        )
    return split_off_validation(build_dataset(CLASSES, entries))


def _of_class(folder: Path, prefix: str) -> Found:
    entries: Found = []
    for name, split in FOLDERS.items():
        labels = folder / name / LABELS
        if not (folder / name).is_dir():
            entries.append(
                DataSetIssue(str(folder), f"The folder {name} is missing. Expected {folder / name}.")
            )
        elif not labels.is_dir():
            text = f"The folder {LABELS} is missing. Expected {labels / _LABELS_FILE}."
            entries.append(DataSetIssue(str(folder / name), text))
        else:
            entries += _of_split(folder / name, f"{prefix}{name}", split)
    return entries


def _of_split(folder: Path, prefix: str, split: Split) -> Found:
    """Items, named `<prefix>/0576`, and problems of one folder `Train` or `Test`."""
    labels = folder / LABELS / _LABELS_FILE
    masks = (labels.parent, "_label.PNG")
    entries = pair_files(prefix, r"\d+", (folder, ".PNG"), masks, mask_needed=False)
    try:
        defective, problems = _read_labels(labels, prefix)
    except DatasetError as error:
        return [*entries, DataSetIssue(str(labels), f"{error} Copy it from the published set.")]
    absent = sorted(defective.keys() - {entry.name for entry in entries})
    return [
        *(_labelled(entry, split, defective.get(entry.name), labels) for entry in entries),
        *problems,
        *(DataSetIssue(str(labels), f"{name}.PNG is missing.", name) for name in absent),
    ]


def _read_labels(path: Path, prefix: str) -> tuple[dict[str, bool], list[DataSetIssue]]:
    """Returns whether each listed photograph is defective, by name, and a problem for each invalid line."""
    defective: dict[str, bool] = {}
    problems = []
    for number, line in enumerate(read_text(path, "label").splitlines(), start=1):
        if number == 1 or not line.strip():
            continue
        if match := _LABEL_LINE.match(line):
            defective[f"{prefix}/{match[2]}"] = match[1] == "1"
        else:
            text = f"Invalid line '{line.strip()[:80]}'. Copy the file again from the published set."
            problems.append(DataSetIssue(f"{path}, line {number}", text))
    return defective, problems


def _labelled(
    entry: DataSetItem | DataSetIssue, split: Split, defective: bool | None, labels: Path
) -> DataSetItem | DataSetIssue:
    """The item with label and split, or a problem if Labels.txt does not list or contradicts it."""
    if isinstance(entry, DataSetIssue):
        return entry
    masked = entry.mask_file is not None
    if defective == masked:
        return replace(entry, label=int(masked), split=split)
    if defective is None:
        text = f"{labels} does not list it. Add a line, or remove the photograph."
    else:
        text = (
            f"{labels} labels it {'defective' if defective else 'good'}, but its mask "
            f"{'exists' if masked else 'is missing'}. Copy both again from the published set."
        )
    return DataSetIssue(str(entry.image_file), text, entry.name)
