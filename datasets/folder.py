"""Own photographs: one folder a class, and one mask for each photograph with a defect.

    root/good/0001.jpg
    root/scratch/0002.jpg            any name: `defect`, or one folder for each class of defect
    root/masks/scratch/0002.png      or root/masks/0002.png where no other defect has that stem
    root/splits.txt                  optional; without it 60 % train, 20 % validate and 20 % test

Photographs and masks are paired by stem. A photograph is named `<class>/<stem>` and is a group of
its own. Masks are PNG, BMP or TIFF, of the photograph's size, above 0 where there is a defect.
Files of other types beside the photographs are not looked at.
"""

from pathlib import Path

from datasets.listing import files, subfolders
from datasets.mask_pairing import pair_masks
from datasets.sample import Dataset, Record
from datasets.splitting import apply_splits, default_split
from segdec.errors import DatasetError
from segdec.images import read_mask

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp"})

GOOD = "good"
MASKS = "masks"
SPLITS_FILE = "splits.txt"


def index(root: Path) -> Dataset:
    """List the photographs below `root`; their split is that of `splits.txt`, else the default one.

    Raises:
        DatasetError: When a folder cannot be listed or is missing, a mask is missing, belongs to no
            photograph or contradicts the class folder, or two files share a stem.
        ImageError: When a mask cannot be read.
    """
    dataset = list_records(root)
    if (root / SPLITS_FILE).exists():
        return apply_splits(dataset, root / SPLITS_FILE)
    return default_split(dataset)


def list_records(root: Path) -> Dataset:
    """The same without a split; raises the same."""
    classes = _classes(root)
    photographs = {
        f"{name}/{path.stem}": path for name in classes for path in _photographs(root / name).values()
    }
    masks = pair_masks(root / MASKS, photographs, GOOD)
    records = []
    for name, path in sorted(photographs.items()):
        class_name, stem = name.split("/", 1)
        if name not in masks and class_name != GOOD:
            raise _missing_mask(path, root / MASKS / class_name / f"{stem}.png", root / MASKS / f"{stem}.png")
        if name in masks:
            _check_mask(masks[name], path, class_name)
        records.append(Record(name, path, masks.get(name), label=classes.index(class_name), group=name))
    return Dataset(classes=classes, records=tuple(records))


def _classes(root: Path) -> tuple[str, ...]:
    """`good` and the sorted names of the other folders."""
    names = [folder.name for folder in subfolders(root) if folder.name != MASKS]
    if GOOD not in names or len(names) < 2:
        raise DatasetError(
            f"The folder {root} holds these folders: {', '.join(names) or 'none'}. "
            f"Expected '{GOOD}' and at least one folder of defects, for example {root / GOOD}, "
            f"{root / 'defect'} and {root / MASKS / 'defect'}."
        )
    return (GOOD, *(name for name in names if name != GOOD))


def _photographs(folder: Path) -> dict[str, Path]:
    """The photographs of one class by stem; at least one."""
    nested = subfolders(folder)
    if nested:
        raise DatasetError(
            f"{nested[0]} is a folder among photographs. Expected photographs directly in {folder}: "
            "move them one level up."
        )
    found: dict[str, Path] = {}
    for path in (path for path in files(folder) if path.suffix.lower() in SUFFIXES):
        if found.setdefault(path.stem, path) != path:
            raise DatasetError(
                f"Two photographs are named '{path.stem}': {found[path.stem]} and {path}. Rename one of them."
            )
    if not found:
        types = ", ".join(sorted(SUFFIXES))
        raise DatasetError(f"The folder {folder} holds no photograph. Expected files of the types {types}.")
    return found


def _missing_mask(photograph: Path, *expected: Path) -> DatasetError:
    return DatasetError(
        f"The photograph {photograph} shows a defect but has no mask. Expected "
        f"{' or '.join(map(str, expected))}: draw it, or move the photograph to '{GOOD}'."
    )


def _check_mask(mask: Path, photograph: Path, class_name: str) -> None:
    marks_defect = bool(read_mask(mask).any())
    if marks_defect != (class_name != GOOD):
        raise DatasetError(
            f"The mask {mask} marks {'a' if marks_defect else 'no'} defect, but its photograph {photograph} "
            f"lies in '{class_name}'. Draw the mask anew, or move the photograph to the class it belongs to."
        )
