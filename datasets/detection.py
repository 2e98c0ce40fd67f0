"""Detects the layout of a folder from file names, without reading photographs.

A published set has its own layout; any other folder has the layout `folder`, which reads all annotations.
"""

import re
from collections.abc import Callable
from pathlib import Path

from datasets.layouts import dagm, kolektor2, magnetic_tile, manifest, severstal
from datasets.listing import files, subfolders
from segdec.errors import DatasetError
from segdec.images import SUFFIXES
from segdec.runtime.label_names import is_good

Matcher = Callable[[Path], bool]

FOLDER = "folder"


def detect_layout(root: Path) -> str:
    """Returns the layout of the folder or file `root`: `folder` if there is no sign of another one.

    Raises:
        DatasetError: If `root` cannot be listed, or matches several layouts.
    """
    matching = [name for name, matches in SIGNS.items() if matches(root)]
    if len(matching) > 1:
        raise DatasetError(
            f"{root} matches several layouts: {', '.join(matching)}. Choose one with --layout "
            f"{matching[0]} (python -m training fit), or give {matching[0]} instead of auto (python -m "
            "datasets)."
        )
    return matching[0] if matching else FOLDER


def find_root(root: Path) -> Path:
    """Returns the folder of the data set: `root`, or the one below it that holds everything.

    Archives often contain one folder with everything in it. A folder of photographs alone is not such a
    folder, because its name is the class.
    """
    while not root.is_file() and not any(matches(root) for matches in SIGNS.values()):
        inner = subfolders(root)
        if files(root) or len(inner) != 1:
            break
        beside = [path for path in files(inner[0]) if path.suffix.lower() not in SUFFIXES]
        if not beside and not subfolders(inner[0]):
            break
        root = inner[0]
    return root


# === Signs ===


def _names(root: Path) -> set[str]:
    return {path.name for path in subfolders(root)} if not root.is_file() else set()


def _holds(*names: str) -> Matcher:
    """Matches a folder with one of these files."""
    return lambda root: any((root / name).is_file() for name in names)


def _folder_like(pattern: str) -> Matcher:
    return lambda root: any(re.fullmatch(pattern, name) for name in _names(root))


def _is_kolektor2(root: Path) -> bool:
    return set(kolektor2.FOLDERS) <= _names(root) and any(
        path.name.endswith("_GT.png") for name in kolektor2.FOLDERS for path in files(root / name)
    )


def _is_severstal(root: Path) -> bool:
    return severstal.PHOTOGRAPHS in _names(root) and _holds(severstal.TABLE)(root)


def _is_dagm(root: Path) -> bool:
    folders = [root, *(root / name for name in _names(root) if re.fullmatch(r"Class\d+", name))]
    return any((folder / name / dagm.LABELS).is_dir() for folder in folders for name in dagm.FOLDERS)


def _is_manifest(root: Path) -> bool:
    if root.is_file():
        return root.suffix.lower() in {Path(name).suffix for name in manifest.NAMES}
    return _holds(*manifest.NAMES)(root)


SIGNS: dict[str, Matcher] = {
    FOLDER: lambda root: any(map(is_good, _names(root))),
    "manifest": _is_manifest,
    "shards": _holds("records.table"),
    "kolektor": _folder_like(r"kos\d+"),
    "kolektor2": _is_kolektor2,
    "dagm": _is_dagm,
    "severstal": _is_severstal,
    "magnetic_tile": lambda root: magnetic_tile.FREE in _names(root),
}
"""Returns for each layout whether a root has its signs."""
