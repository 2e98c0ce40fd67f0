"""Lists all photographs below a folder."""

from collections import deque
from pathlib import Path

from datasets.layouts.listing import files, subfolders
from segdec.images import SUFFIXES

UNSUPPORTED_SUFFIXES = frozenset(
    {".avif", ".cr2", ".dng", ".gif", ".heic", ".heif", ".jp2", ".nef", ".pgm", ".pnm", ".ppm", ".raw"}
)
"""Photograph types that are not supported."""


def folders_below(root: Path) -> list[Path]:
    """Lists `root` and all visible folders below it, sorted; follows links, and lists each folder once.

    Raises:
        DatasetError: If a folder cannot be listed.
    """
    found: dict[Path, Path] = {}  # resolved path → path
    waiting = deque([root])
    while waiting:
        folder = waiting.popleft()
        if found.setdefault(folder.resolve(), folder) is not folder:
            continue
        for inner in subfolders(folder):
            if inner.is_symlink():
                waiting.append(inner)
            else:
                waiting.appendleft(inner)
    return sorted(found.values())


def photographs_below(root: Path) -> list[Path]:
    """Lists all photographs below `root`, sorted; raises the errors of `folders_below`."""
    return sorted(
        path for folder in folders_below(root) for path in files(folder) if path.suffix.lower() in SUFFIXES
    )


def record_name(root: Path, photograph: Path) -> str:
    """Returns the path of `photograph` below `root` without suffix, POSIX form."""
    return photograph.relative_to(root).with_suffix("").as_posix()
