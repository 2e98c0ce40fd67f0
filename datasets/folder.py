"""Own photographs: one folder a class, and one mask for each photograph with a defect.

    root/good/0001.jpg
    root/scratch/0002.jpg            any name: `defect`, or one folder for each class of defect
    root/masks/scratch/0002.png      or root/masks/0002.png where the stem is unique among the defects
    root/splits.txt                  optional; without it 60 % train, 20 % validate and 20 % test

Photographs and masks are paired by stem. A photograph is named `<class>/<stem>` and is a group of
its own. Masks are PNG, BMP or TIFF, of the photograph's size, above 0 where there is a defect.
Files of other types beside the photographs are not looked at.
"""

from dataclasses import dataclass
from pathlib import Path

from datasets.listing import files, subfolders
from datasets.sample import Dataset, Record
from datasets.splitting import apply_splits, default_split
from segdec.errors import DatasetError
from segdec.images import read_mask

PHOTOGRAPH_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp"})
MASK_SUFFIXES = frozenset({".png", ".bmp", ".tif", ".tiff"})

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
    classes = _classes(root)
    photographs = {
        f"{name}/{stem}": path
        for name in classes
        for stem, path in _by_stem(root / name, PHOTOGRAPH_SUFFIXES, "photograph").items()
    }
    masks = _Masks.below(root / MASKS, classes)
    records = tuple(_record(name, photographs, masks, classes) for name in sorted(photographs))
    masks.check_all_used(records)
    dataset = Dataset(classes=classes, records=records)
    if (root / SPLITS_FILE).exists():
        return apply_splits(dataset, root / SPLITS_FILE)
    return default_split(dataset)


def _classes(root: Path) -> tuple[str, ...]:
    """`good` and the sorted names of the other folders."""
    names = [folder.name for folder in subfolders(root) if folder.name != MASKS]
    if GOOD not in names or len(names) < 2:
        raise DatasetError(
            f"The folder {root} holds the folders: {', '.join(names) or 'none'}. Expected '{GOOD}' and at least "
            f"one folder of defects, for example {root / GOOD}, {root / 'defect'} and {root / MASKS / 'defect'}."
        )
    return (GOOD, *(name for name in names if name != GOOD))


def _by_stem(folder: Path, suffixes: frozenset[str], what: str) -> dict[str, Path]:
    """The files of a folder that have one of `suffixes`, in any case, by stem; never an empty dict."""
    nested = subfolders(folder)
    if nested:
        raise DatasetError(
            f"The folder {nested[0]} lies among the {what}s of {folder}. Expected files only: move its "
            f"{what}s one level up."
        )
    found = _unique_stems(files(folder), suffixes, what)
    if not found:
        raise DatasetError(f"The folder {folder} holds no {what}. Expected files {_list(suffixes)}.")
    return found


def _unique_stems(paths: list[Path], suffixes: frozenset[str], what: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in paths:
        if path.suffix.lower() in suffixes and found.setdefault(path.stem, path) != path:
            raise DatasetError(
                f"Two {what}s have the stem '{path.stem}': {found[path.stem]} and {path}. Rename one of them."
            )
    return found


@dataclass(frozen=True)
class _Masks:
    """Mask files below `folder`: by class and stem, and by stem alone for those directly in it."""

    folder: Path
    of_class: dict[str, dict[str, Path]]
    flat: dict[str, Path]

    @classmethod
    def below(cls, folder: Path, classes: tuple[str, ...]) -> "_Masks":
        if not folder.exists():
            return cls(folder, {}, {})
        for path in (path for place in (folder, *subfolders(folder)) for path in files(place)):
            _check_lossless(path)
        of_class = {place.name: _by_stem(place, MASK_SUFFIXES, "mask") for place in subfolders(folder)}
        unknown = sorted(set(of_class) - set(classes))
        if unknown:
            raise DatasetError(
                f"The folder {folder / unknown[0]} holds masks of no class. Expected one of: {', '.join(classes)}."
            )
        return cls(folder, of_class, _unique_stems(files(folder), MASK_SUFFIXES, "mask"))

    def find(self, name: str, photographs: dict[str, Path], classes: tuple[str, ...]) -> Path | None:
        """The mask of the photograph `name`; a flat one goes to the only photograph that can own it."""
        class_name, stem = name.split("/", 1)
        own, flat = self.of_class.get(class_name, {}).get(stem), self.flat.get(stem)
        if flat is None:
            return own
        rivals = [other for other in (f"{c}/{stem}" for c in classes) if other in photographs]
        owners = [other for other in rivals if not other.startswith(f"{GOOD}/")] or rivals
        if len(owners) > 1 or (owners == [name] and own is not None):
            raise DatasetError(
                f"The mask {flat} belongs to more than one photograph or has a rival: {', '.join(owners)}. "
                f"Keep one mask a photograph, in {self.folder}/<class>."
            )
        return flat if owners == [name] else own

    def check_all_used(self, records: tuple[Record, ...]) -> None:
        """DatasetError when a mask belongs to no photograph."""
        used = {record.mask_path for record in records}
        nested = [path for masks in self.of_class.values() for path in masks.values()]
        unused = sorted(path for path in (*nested, *self.flat.values()) if path not in used)
        if unused:
            raise DatasetError(
                f"The mask {unused[0]} belongs to no photograph{_and_more(unused)}. Expected a photograph with "
                f"the stem '{unused[0].stem}' in a class folder of {self.folder.parent}: add it or remove the mask."
            )


def _record(name: str, photographs: dict[str, Path], masks: _Masks, classes: tuple[str, ...]) -> Record:
    class_name, stem = name.split("/", 1)
    label = classes.index(class_name)
    path = masks.find(name, photographs, classes)
    if path is None and label > 0:
        expected = (masks.folder / class_name / f"{stem}.png", masks.folder / f"{stem}.png")
        raise DatasetError(
            f"The photograph {photographs[name]} shows a defect but has no mask. "
            f"Expected {expected[0]} or {expected[1]}: draw it, or move the photograph to '{GOOD}'."
        )
    if path is not None and bool(read_mask(path).any()) != (label > 0):
        state = "marks no defect" if label > 0 else "marks a defect"
        raise DatasetError(
            f"The mask {path} {state}, but its photograph {photographs[name]} lies in '{class_name}'. "
            "The label comes from the mask: draw the mask anew, or move the photograph to another class."
        )
    return Record(name, photographs[name], path, label=label, group=name)


def _check_lossless(path: Path) -> None:
    if path.suffix.lower() in PHOTOGRAPH_SUFFIXES - MASK_SUFFIXES:
        raise DatasetError(
            f"The mask {path} is of a type that may change values around edges. "
            f"Expected {_list(MASK_SUFFIXES)}: draw it anew and save it as PNG."
        )


def _list(suffixes: frozenset[str]) -> str:
    return f"of the types {', '.join(sorted(suffixes))}"


def _and_more(paths: list[Path]) -> str:
    return f" (nor do {len(paths) - 1} more)" if len(paths) > 1 else ""
