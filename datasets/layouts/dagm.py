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
from pathlib import Path

from datasets.layouts.dagm_labels import FILE_NAME, LabelLine, read_labels
from datasets.layouts.listing import subfolders
from datasets.layouts.published_pairs import PublishedPair, build_dataset, files_by_name, pair_files
from datasets.sample import Dataset, Problem, Record, Split
from datasets.splitting import split_off_validation
from segdec.errors import DatasetError

CLASSES = ("good", "defect")

FOLDERS: dict[str, Split] = {"Train": "train", "Test": "test"}

_LABELS = "Label"
_CLASS = re.compile(r"Class\d+")
_PHOTOGRAPH = re.compile(r"(\d+)\.PNG")
_MASK = re.compile(r"(\d+)_label\.PNG")


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
        found = _of_class(root, "")
    else:
        classes = [folder for folder in folders if _CLASS.fullmatch(folder.name)]
        found = [entry for folder in classes for entry in _of_class(folder, f"{folder.name}/")]
    if not found:
        raise DatasetError(
            f"The folder {root} holds no DAGM photographs. Expected {root / 'Class1' / 'Train' / '0001.PNG'} "
            f"or {root / 'Train' / '0001.PNG'} and so on: give the folder of one class, or the folder of "
            "Class1, Class2, …"
        )
    return split_off_validation(build_dataset(CLASSES, found))


def _of_class(folder: Path, prefix: str) -> list[Record | Problem]:
    present = {path.name for path in subfolders(folder)}
    found: list[Record | Problem] = []
    for name, split in FOLDERS.items():
        if name in present:
            found += _of_split(folder / name, f"{prefix}{name}", split)
        else:
            found.append(Problem(str(folder), f"The folder {name} is missing. Expected {folder / name}."))
    return found


def _of_split(folder: Path, prefix: str, split: Split) -> list[Record | Problem]:
    """Records, named `<prefix>/0576`, and problems of one folder `Train` or `Test`."""
    label_folder = folder / _LABELS
    if label_folder not in subfolders(folder):
        return [
            Problem(str(folder), f"The folder {_LABELS} is missing. Expected {label_folder / FILE_NAME}.")
        ]
    pairs = pair_files(
        files_by_name(folder, _PHOTOGRAPH, prefix),
        files_by_name(label_folder, _MASK, prefix),
        lambda name: folder / f"{Path(name).name}.PNG",
        lambda name: label_folder / f"{Path(name).name}_label.PNG",
        mask_needed=False,
    )
    entries, problems = read_labels(label_folder / FILE_NAME, prefix)
    found = [_record(entry, split) if isinstance(entry, PublishedPair) else entry for entry in pairs]
    if entries is None:
        return [*found, *problems]
    checked = [_checked(entry, entries.get(entry.name), label_folder) for entry in found]
    absent = entries.keys() - {entry.name for entry in found}
    return [*checked, *problems, *(_absent(name, entries[name].place) for name in absent)]


def _record(found: PublishedPair, split: Split) -> Record:
    label = int(found.mask is not None)
    return Record(
        found.name, found.photograph, found.mask, label=label, group=found.name, split=split, mask_threshold=0
    )


def _checked(found: Record | Problem, entry: LabelLine | None, label_folder: Path) -> Record | Problem:
    """Returns `found`, or a problem if Labels.txt does not list or contradicts it."""
    if isinstance(found, Problem) or (entry is not None and entry.defective == bool(found.label)):
        return found
    if entry is None:
        text = f"{label_folder / FILE_NAME} does not list it. Add a line, or remove the photograph."
        return Problem(str(found.image_file), text, found.name)
    mask = label_folder / f"{Path(found.name).name}_label.PNG"
    text = (
        f"The line labels the photograph {'defective' if entry.defective else 'good'}, but the mask {mask} "
        f"{'exists' if found.label else 'is missing'}. Copy both again from the published set."
    )
    return Problem(entry.place, text, found.name)


def _absent(name: str, place: str) -> Problem:
    text = f"{Path(name).name}.PNG is missing. Copy it from the published set, or remove the line."
    return Problem(place, text, name)
