"""The meaning of folder names: classes, splits, photographs, masks."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from datasets.annotations.label_meanings import interpret_labels
from datasets.annotations.labels import DEFECT, GOOD
from datasets.formats.voc import SEGMENTATION_FOLDERS
from datasets.listing import comparison_key, composed
from datasets.reading_options import DEFAULTS, ReadingOptions
from datasets.sample import Split
from datasets.splitting import split_of_folder
from segdec.runtime.label_names import is_any_defect, is_good

MASKS = "masks"

_IMAGE_NAMES = frozenset(
    {"image", "images", "img", "imgs", "photo", "photos", "photographs", "pictures", "bilder"}
    | {"jpegimages", "data", "dataset"}
)
_MASK_NAMES = frozenset({"mask", MASKS, "maske", "masken", "groundtruth", "gt"})
_ANNOTATION_NAMES = frozenset(
    {"label", "labels", "annotation", "annotations", "segmentation", "segmentations", "seg"}
)
"""Names of mask folders if a folder of photographs, such as `images`, is beside them."""

_MASK_WORD = re.compile(
    r"^(masks?|masken?|gt|ground_?truth)[\s._-]+|[\s._-]+(masks?|masken?|gt|ground_?truth)$", re.IGNORECASE
)
"""Part of a mask folder's name such as `scratch_masks`."""

_LETTER = re.compile(r"[^\W\d_]")


class ClassFolders:
    """Classes and splits of photographs, from the names of their folders.

    A folder named `good` or `defect` (or alike) and the folders beside it are classes, and so are folders of
    these names elsewhere. Folders in `defect` are classes unless `good` has some of their names, or they are
    numbers. A folder with the name of a label is a class too. `train`, `images`, `exports` and alike may be
    above or below them. `labels` are those of defects in annotation files, `exports` the folders of
    annotation files that list many photographs, of any class. `reading` may name further folders as good.
    """

    def __init__(
        self,
        root: Path,
        photographs: Iterable[Path],
        labels: Iterable[str] = (),
        exports: Iterable[Path] = (),
        reading: ReadingOptions = DEFAULTS,
    ) -> None:
        self._folders = {folder: _below(root, folder) for folder in {path.parent for path in photographs}}
        known = {above for folders in self._folders.values() for above in folders}
        splits = {folder for folder in known if split_of_folder(folder.name)}
        trained = {folder.parent for folder in splits if split_of_folder(folder.name) == "train"}
        self._splits = {folder for folder in splits if folder.parent in trained}
        self._good = set(_good_folders(known, reading))
        parents = {folder.parent for folder in known if folder in self._good or is_any_defect(folder.name)}
        above = {folder.parent for folder in parents & self._splits}
        self._parents = parents | {folder for folder in self._splits if folder.parent in above}
        self._containers = {above for f in {*exports, *self._parents} for above in _below(root, f)}
        others = {folder for folder in known if not self._is_neutral(folder)}
        self._labels = {comparison_key(label) for label in labels}
        self._names = {comparison_key(folder.name) for folder in others if folder.parent in self._parents}
        in_good = {
            comparison_key(path.name) for path in known if not self._good.isdisjoint(_below(root, path)[:-1])
        }
        in_defect = {folder for folder in others if is_any_defect(folder.parent.name)}
        shared = {folder.parent for folder in in_defect if comparison_key(folder.name) in in_good}
        self._kinds = {f for f in in_defect if f.parent not in shared and _LETTER.search(f.name)}

    def class_of(self, photograph: Path) -> str | None:
        """Returns the class that a folder of the photograph states, by its name; None without one."""
        folder = self._stating_folder(photograph.parent)
        return None if folder is None else composed(folder.name)

    def _stating_folder(self, parent: Path) -> Path | None:
        """The folder that states the class of the photographs in `parent`."""
        folders = self._folders[parent]
        for folder, inner in zip(folders, [*folders[1:], None], strict=False):
            if folder in self._good:
                return folder
            if is_any_defect(folder.name):
                return inner if inner in self._kinds else folder
            key = comparison_key(folder.name)
            if key in self._labels or (key in self._names and not self._is_neutral(folder)):
                return folder
        return None

    def _is_neutral(self, folder: Path) -> bool:
        """Whether a folder holds photographs of any class: a split, an export, or one with class folders."""
        return folder in self._splits | self._containers or is_image_folder(folder.name)

    def split_of(self, photograph: Path) -> Split | None:
        """Returns the split that a folder states, such as `test` with `train` beside it."""
        splits = (split_of_folder(f.name) for f in self._folders[photograph.parent] if f in self._splits)
        return next(splits, None)

    def describe(self, good: Collection[str]) -> list[str]:
        """Returns a sentence for each folder name that states a class, unless it is the name of the class.

        `good` are the classes that mean good.
        """
        notes = set()
        for folder in filter(None, map(self._stating_folder, self._folders)):
            if folder in self._good and folder.name != GOOD and composed(folder.name) in good:
                notes.add(f"The folder '{folder.name}' was read as good.")
            elif is_any_defect(folder.name) and folder.name != DEFECT:
                notes.add(f"The folder '{folder.name}' was read as a class of defects.")
        return sorted(notes)


def _good_folders(folders: Iterable[Path], reading: ReadingOptions) -> Iterator[Path]:
    """The folders whose names mean good, if there are no other labels than the folders beside them."""
    beside: dict[Path, list[Path]] = defaultdict(list)
    for folder in folders:
        if not is_image_folder(folder.name) and split_of_folder(folder.name) is None:
            beside[folder.parent].append(folder)
    for group in beside.values():
        good = interpret_labels((folder.name for folder in group), reading).good
        yield from (folder for folder in group if folder.name in good)


def _below(root: Path, folder: Path) -> list[Path]:
    """`folder` and the folders above it below `root`, from the top."""
    return [
        path for path in reversed((folder, *folder.parents)) if path != root and path.is_relative_to(root)
    ]


def is_image_folder(name: str) -> bool:
    """Returns whether a folder of this name holds photographs of any class, such as `images`."""
    return _plain(name) in _IMAGE_NAMES


def find_mask_folders(files: Iterable[Path]) -> set[Path]:
    """Returns the folders of these files that hold masks by their name, such as `masks`, at any depth."""
    parents = {path.parent for path in files}
    folders = parents.union(*(folder.parents for folder in parents))
    beside_images = {
        folder.parent
        for folder in folders
        if is_image_folder(folder.name) or is_good(folder.name) or is_any_defect(folder.name)
    }
    return {
        folder
        for folder in folders
        if _plain(folder.name) in _MASK_NAMES
        or folder.name.startswith(SEGMENTATION_FOLDERS)
        or (_plain(folder.name) in _ANNOTATION_NAMES and folder.parent in beside_images)
        or _is_mask_of(folder, folders)
    }


def _is_mask_of(folder: Path, folders: Collection[Path]) -> bool:
    """Whether the name is that of a folder beside it, or of one of images, with a word such as `masks`."""
    other = _MASK_WORD.sub("", folder.name)
    return other != folder.name and (is_image_folder(other) or folder.with_name(other) in folders)


def distinctive_parts(folder: Path) -> tuple[str, ...]:
    """Returns the parts of a relative folder without `images`, `masks`, `train` and alike, in lower case."""
    common = _IMAGE_NAMES | _MASK_NAMES | _ANNOTATION_NAMES
    return tuple(
        comparison_key(part)
        for part in (_MASK_WORD.sub("", part) for part in folder.parts)
        if _plain(part) not in common and split_of_folder(part) is None
    )


def split_words(folder: Path) -> list[Split]:
    """Returns the splits that the parts of a relative folder state."""
    return [split for part in folder.parts if (split := split_of_folder(part))]


def _plain(name: str) -> str:
    return re.sub(r"[\s._-]", "", name.lower())
