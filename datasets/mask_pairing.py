"""Finds the photograph of each mask by its name, and refuses what does not pair."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from datasets.listing import files, subfolders
from segdec.errors import DatasetError

SUFFIXES = frozenset({".png", ".bmp", ".tif", ".tiff"})
LOSSY_SUFFIXES = frozenset({".jpg", ".jpeg", ".webp"})


def pair_masks(folder: Path, photographs: dict[str, Path], good: str) -> dict[str, Path]:
    """The mask of each photograph that has one.

    `<folder>/<class>/<stem>.png` belongs to the photograph `<class>/<stem>`. `<folder>/<stem>.png`
    belongs to the one photograph with a defect of that stem, or to the one good photograph.

    Args:
        folder: Where the masks lie; it need not exist.
        photographs: Name (`<class>/<stem>`) → file.
        good: The class without defects.

    Raises:
        DatasetError: When a mask belongs to no photograph or to several, a photograph has two masks,
            or a mask is of a lossy type.
    """
    masks: dict[str, Path] = {}
    by_stem: dict[str, list[str]] = defaultdict(list)
    for name in photographs:
        by_stem[name.split("/", 1)[1]].append(name)
    for path in _mask_files(folder):
        same_stem = by_stem.get(path.stem, [])
        owners = _owners_flat(same_stem, good) if path.parent == folder else _owners_nested(same_stem, path)
        owner = _only(owners, path, folder, photographs)
        if masks.setdefault(owner, path) != path:
            raise DatasetError(
                f"The photograph {photographs[owner]} has two masks: {masks[owner]} and {path}. Remove one."
            )
    return masks


def _mask_files(folder: Path) -> Iterable[Path]:
    if not folder.exists():
        return
    for place in (folder, *subfolders(folder)):
        for path in files(place):
            if path.suffix.lower() in LOSSY_SUFFIXES:
                raise DatasetError(
                    f"The mask {path} is of a type that changes values around edges. Expected one of "
                    f"{', '.join(sorted(SUFFIXES))}: draw it anew and save it as PNG."
                )
            if path.suffix.lower() in SUFFIXES:
                yield path


def _owners_nested(same_stem: list[str], path: Path) -> list[str]:
    return [name for name in same_stem if name == f"{path.parent.name}/{path.stem}"]


def _owners_flat(same_stem: list[str], good: str) -> list[str]:
    return [name for name in same_stem if not name.startswith(f"{good}/")] or same_stem


def _only(owners: list[str], path: Path, folder: Path, photographs: dict[str, Path]) -> str:
    if not owners:
        expected = folder.parent / ("<class>" if path.parent == folder else path.parent.name)
        raise DatasetError(
            f"The mask {path} belongs to no photograph. Expected one named '{path.stem}' in {expected}: "
            "add it, or remove the mask."
        )
    if len(owners) > 1:
        raise DatasetError(
            f"The mask {path} may belong to {' or '.join(str(photographs[name]) for name in owners)}. "
            f"Put it into {folder / owners[0].split('/', 1)[0]} or another class folder beside it."
        )
    return owners[0]
