"""One folder for each class, and one mask for each defective photograph.

    root/good/0001.jpg               or `ok`, in any case
    root/scratch/0002.jpg            any name: `defect`, or one folder for each class of defect
    root/masks/scratch/0002.png      or root/masks/0002.png if no other defect has this stem
    root/splits.txt                  optional; without it 60 % train, 20 % val and 20 % test
    root/supervision.txt             optional; lists photographs with boxes or without masks

Photographs and masks are paired by stem; `0002_mask.png`, `0002_label.png` and `0002_GT.png` also belong to
0002. A photograph is named `<class>/<stem>` and is its own group. Masks are PNG, BMP or TIFF of the
photograph's size, above 0 for defect pixels. Other files are ignored.

Good photographs alone are also a data set, with the classes `good` and `defect`.

A defective photograph without a mask is a problem, because the mask may have been forgotten, unless
`supervision.txt` has the line `label  scratch/0002`, or `label  scratch` for the whole folder. The line
`box  scratch` means that the masks there are boxes. See `datasets.supervision`.
"""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from datasets.annotations.labels import DEFECT, GOOD, is_good
from datasets.layouts.listing import UNSUPPORTED_SUFFIXES, files, subfolders
from datasets.layouts.mask_pairing import pair_masks
from datasets.sample import Dataset, Problem, Record
from datasets.splitting import assign_splits
from datasets.supervision import apply_supervision
from segdec.errors import DatasetError
from segdec.images import SUFFIXES

MASKS = "masks"
SUPERVISION_FILE = "supervision.txt"


def index(root: Path) -> Dataset:
    """Lists the photographs below `root`, with the split of `splits.txt` or the default split.

    Problems are photographs with no mask or two, with equal stems, of an unsupported type or in a subfolder
    of a class, masks without a photograph, and classes without photographs.

    Raises:
        DatasetError: If `root` cannot be listed, has no folder of good photographs or no photograph, or one
            of its text files is invalid.
    """
    return assign_splits(list_records(root), root)


def list_records(root: Path) -> Dataset:
    """Lists the records without a split; raises the errors of `index`."""
    good, *defects = folders = _class_folders(root)
    photographs: dict[str, Path] = {}
    problems: list[Problem] = []
    for class_name in folders:
        for name, paths in _photographs(root / class_name, problems).items():
            photographs[name] = paths[0]
            if len(paths) > 1:
                named = " and ".join(map(str, paths))
                text = (
                    f"{len(paths)} photographs have the name '{name}': {named}. Rename all but one of them."
                )
                problems.append(Problem(str(paths[0]), text, name))
    if not photographs:
        raise DatasetError(
            f"The folder {root} holds no photograph in {', '.join(folders)}. "
            f"Expected files of the types {', '.join(sorted(SUFFIXES))}."
        )
    mask_folder = next((path for path in subfolders(root) if path.name.lower() == MASKS), root / MASKS)
    masks, unpaired = pair_masks(mask_folder, photographs, good)
    problems += unpaired
    broken = {problem.name for problem in problems}
    records = tuple(
        Record(name, path, masks.get(name), label=folders.index(name.split("/", 1)[0]), group=name)
        for name, path in sorted(photographs.items())
        if name not in broken
    )
    dataset = Dataset((GOOD, *(defects or [DEFECT])), records, tuple(problems))
    if (root / SUPERVISION_FILE).exists():
        dataset = apply_supervision(dataset, root / SUPERVISION_FILE)
    return _without_unmasked(dataset, root, mask_folder)


def _class_folders(root: Path) -> list[str]:
    """The name of the folder of good photographs, and the sorted names of the others."""
    names = [folder.name for folder in subfolders(root) if folder.name.lower() != MASKS]
    good = [name for name in names if is_good(name)]
    if len(good) != 1:
        raise DatasetError(
            f"The folder {root} holds these folders: {', '.join(names) or 'none'}. "
            f"Expected one named '{GOOD}' (or 'ok') and a folder for each class of defects, for example "
            f"{root / GOOD}, {root / DEFECT} and {root / MASKS / DEFECT}."
        )
    return [*good, *(name for name in names if name not in good)]


def _photographs(folder: Path, problems: list[Problem]) -> dict[str, list[Path]]:
    """The photographs of one class by name; adds the problems of the folder to `problems`."""
    try:
        nested, found = subfolders(folder), files(folder)
    except DatasetError as error:
        problems.append(Problem(str(folder), str(error)))
        return {}
    text = f"is a folder in a class folder. Expected photographs directly in {folder}: move them up."
    problems += (Problem(str(path), f"{path} {text}") for path in nested)
    by_name: dict[str, list[Path]] = defaultdict(list)
    foreign: dict[str, Path] = {}
    for path in found:
        if path.suffix.lower() in SUFFIXES:
            by_name[f"{folder.name}/{path.stem}"].append(path)
        elif path.suffix.lower() in UNSUPPORTED_SUFFIXES:
            foreign[f"{folder.name}/{path.stem}"] = path
    types = ", ".join(sorted(SUFFIXES))
    for name in sorted(foreign.keys() - by_name.keys()):
        text = f"{foreign[name]} has an unsupported type. Expected {types}: convert or remove it."
        problems.append(Problem(str(foreign[name]), text, name))
    if not by_name and not foreign:
        text = f"The folder {folder} holds no photograph. Expected files of the types {types}: add some, or"
        problems.append(Problem(str(folder), f"{text} remove the folder."))
    return by_name


def _without_unmasked(dataset: Dataset, root: Path, masks: Path) -> Dataset:
    """Turns defective photographs without a mask into problems, unless their supervision is `label`."""
    usable, problems = [], [*dataset.problems]
    for record in dataset.records:
        if record.label == 0 or record.mask_file is not None or record.supervision == "label":
            usable.append(record)
            continue
        text = (
            f"The photograph {record.image_file} is defective but has no mask. Expected "
            f"{masks / record.name}.png or {masks / record.name.split('/', 1)[1]}.png: draw it, move the "
            f"photograph to '{GOOD}', or write 'label  {record.name}' into {root / SUPERVISION_FILE} to use "
            "its class alone."
        )
        problems.append(Problem(str(record.image_file), text, record.name))
    return replace(dataset, records=tuple(usable), problems=tuple(problems))
