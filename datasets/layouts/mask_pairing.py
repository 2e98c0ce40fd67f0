"""Pairs photographs and mask files by name."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from datasets.annotations.class_values import distinct_values
from datasets.annotations.labels import GOOD
from datasets.causes import Cause
from datasets.layouts.class_folders import MASKS, distinctive_parts, find_mask_folders, split_words
from datasets.listing import comparison_key
from datasets.sample import DataSetIssue, Split
from segdec.errors import ImageError
from segdec.images import decode_mask_values, read_file
from segdec.runtime.label_names import is_any_defect, is_ignored

SUFFIXES = frozenset({".png", ".bmp", ".tif", ".tiff"})
LOSSY_SUFFIXES = frozenset({".jpg", ".jpeg", ".webp"})

_ENDING = re.compile(
    r"[ _.-]*(mask|maske|label|gt|seg|segmentation|ground_?truth|annotation)s?([ _.-]?\d+)?$", re.IGNORECASE
)
"""End of mask names, after the stem of the photograph."""

_BEGINNING = re.compile(r"^(mask|maske|gt)[ _.-]+", re.IGNORECASE)

_NUMBER = re.compile(r"[ _.-]\d+$")
"""Number of one of several masks."""


@dataclass(frozen=True)
class MaskFile:
    """A mask file, and the folder that states its class; empty if the photograph's folder does."""

    path: Path
    folder: str


def separate_masks(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Separates photographs and masks; returns both.

    Masks are in a folder such as `masks`, or beside their photograph with an ending such as `_mask`. A
    black picture with one other value beside a JPEG with its stem is a mask, too.
    """
    named_masks = find_mask_folders(files)
    folders = {path.parent for path in files}
    mask_folders = {folder for folder in folders if not named_masks.isdisjoint((folder, *folder.parents))}
    named = {path.with_suffix("") for path in files}
    compressed = {path.with_suffix("") for path in files if path.suffix.lower() in LOSSY_SUFFIXES}
    photographs: list[Path] = []
    masks: list[Path] = []
    for path in files:
        plain = {_ENDING.sub("", path.stem), _BEGINNING.sub("", path.stem)} - {"", path.stem}
        beside = any(path.with_name(stem) in named for stem in plain)
        same = path.suffix.lower() in SUFFIXES and path.with_suffix("") in compressed
        is_mask = path.parent in mask_folders or beside or (same and _has_mask_values(path))
        (masks if is_mask else photographs).append(path)
    return photographs, masks


def _has_mask_values(path: Path) -> bool:
    try:
        values = distinct_values(decode_mask_values(read_file(path), str(path)))
    except ImageError:
        return False
    return values[0] == 0 and len(values) <= 2


class MaskPairing:
    """Finds the photograph of each mask.

    A mask has the stem of its photograph, also followed by `_mask`, `_label`, `_GT` or a number, or is in a
    folder with this name. Of several photographs with the stem, it belongs to the one in the corresponding
    folder (`masks/scratch/1.png` to `scratch/1.jpg`), otherwise to the only one that is not good.
    `photographs` are files by name, `classes` the class that the folder of each states, or None, by name.
    """

    def __init__(
        self, root: Path, photographs: Mapping[str, Path], classes: Mapping[str, str | None]
    ) -> None:
        self._root = root
        self._photographs = photographs
        self._classes = classes
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        self._parts: dict[str, tuple[str, ...]] = {}
        for name, path in photographs.items():
            self._by_stem[comparison_key(path.stem)].append(name)
            self._parts[name] = distinctive_parts(path.parent.relative_to(root))

    def pair(self, masks: Iterable[Path], problems: list[DataSetIssue]) -> dict[str, list[MaskFile]]:
        """Returns the masks of each photograph by its name; the others become problems.

        Problems are masks of no photograph or of several, and masks of a lossy type. Those in a folder
        `ignore` mark ignored pixels.
        """
        paired: dict[str, list[MaskFile]] = defaultdict(list)
        for path in masks:
            folder = path.parent.relative_to(self._root)
            ignored = is_ignored(folder.name)
            parts = distinctive_parts(folder.parent if ignored else folder)
            owners = self._owners(path, parts)
            if len(owners) > 1:
                owners = [each for each in owners if self._splits(each) == split_words(folder)] or owners
            if len(owners) != 1:
                problems += self._unpaired(path, owners)
            elif path.suffix.lower() in LOSSY_SUFFIXES:
                text = f"The mask {path} has a lossy type, which changes values. Expected one of "
                text += f"{', '.join(sorted(SUFFIXES))}: draw it again and save it as PNG."
                cause = Cause("mask_lossy", {"mask": str(path), "types": ", ".join(sorted(SUFFIXES))})
                problems.append(DataSetIssue(str(path), text, owners[0], cause))
            else:
                stated = folder.name if ignored else self._stated_class(path, parts, owners[0])
                paired[owners[0]].append(MaskFile(path, stated))
        return paired

    def _owners(self, path: Path, parts: tuple[str, ...]) -> list[str]:
        """The names of the photographs to which a mask may belong."""
        if parts:  # the last folder may hold the masks of one photograph
            named = self._by_stem.get(comparison_key(path.parent.name), [])
            if owners := [name for name in named if self._parts[name] == parts[:-1]]:
                return owners
            if len(parts) == 1 and named and parts not in self._parts.values():
                return named
        for stem in _possible_stems(path.stem):
            owners = self._by_stem.get(comparison_key(stem), [])
            if same := [name for name in owners if self._parts[name] == parts]:
                return same
            if parts and (same := [name for name in owners if self._corresponds(name, parts)]):
                return same
            if fitting := [name for name in owners if not parts or self._takes_any_class(name)]:
                return [name for name in fitting if self._classes[name] != GOOD] or fitting
        return []

    def _stated_class(self, path: Path, parts: tuple[str, ...], owner: str) -> str:
        """The folder of a mask if it states the class, empty if that of its photograph `owner` does."""
        folder = path.parent.name
        own = not parts or self._corresponds(owner, parts)
        return (
            "" if own or comparison_key(folder) == comparison_key(self._photographs[owner].stem) else folder
        )

    def _splits(self, name: str) -> list[Split]:
        return split_words(self._photographs[name].parent.relative_to(self._root))

    def _corresponds(self, name: str, parts: tuple[str, ...]) -> bool:
        """Whether the folders of a photograph start or end with those of a mask."""
        own = self._parts[name]
        return parts in (own[: len(parts)], own[-len(parts) :])

    def _takes_any_class(self, name: str) -> bool:
        """Whether masks state the class of a photograph, because its folder does not."""
        stated = self._classes[name]
        return stated is None or is_any_defect(stated)

    def _unpaired(self, path: Path, owners: list[str]) -> Iterator[DataSetIssue]:
        """Yields a problem for a mask without a photograph, or for each of several possible photographs."""
        if not owners:
            stem = _possible_stems(path.stem)[-1]
            text = (
                f"The mask {path} has no photograph. Expected one named '{stem}' in the folder of its class: "
                "add it, or remove the mask."
            )
            cause = Cause("mask_without_photograph", {"mask": str(path), "stem": stem})
            yield DataSetIssue(str(path), text, cause=cause)
        named = " or ".join(str(self._photographs[name]) for name in owners)
        for name in owners:
            folder = str(self._root / MASKS / owners[0])
            text = (
                f"The mask {path} may belong to {named}. "
                f"Move it to a folder with the name of its photograph, such as {folder}."
            )
            values = {"mask": str(path), "photographs": ", ".join(owners), "folder": folder}
            cause = Cause("mask_of_several", values)
            yield DataSetIssue(str(self._photographs[name]), text, name, cause)


def _possible_stems(stem: str) -> list[str]:
    """The stem of a mask, without its ending, and without the number of one of several masks."""
    return list(dict.fromkeys([stem, _BEGINNING.sub("", stem), _ENDING.sub("", stem), _NUMBER.sub("", stem)]))
