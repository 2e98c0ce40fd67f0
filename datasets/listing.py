"""Lists folders and photographs in a fixed order, with one clear error if that fails."""

import errno
import stat
import unicodedata
from collections import deque
from pathlib import Path

from segdec.errors import DatasetError
from segdec.images import SUFFIXES

UNSUPPORTED_SUFFIXES = frozenset(
    {".avif", ".cr2", ".dng", ".gif", ".heic", ".heif", ".jp2", ".nef", ".pgm", ".pnm", ".ppm", ".raw"}
)
"""Photograph types that are not supported."""

_CLUTTER = frozenset(
    {"thumbs.db", "desktop.ini", "__macosx", "$recycle.bin", "system volume information", "lost+found"}
    | {"@eadir", "#recycle", "@recycle"}
)
"""Names, in lower case, that operating systems and network storage create."""


def subfolders(folder: Path) -> list[Path]:
    """Lists the visible folders in `folder`, sorted by name; DatasetError if that fails."""
    return [path for path in _entries(folder) if stat.S_ISDIR(_mode(path))]


def files(folder: Path, *suffixes: str) -> list[Path]:
    """Lists the visible files in `folder`, sorted by name; DatasetError if that fails.

    Includes broken and circular links, so that reading them reports the missing photograph. With `suffixes`
    in lower case, other files are ignored.
    """
    paths = [path for path in _entries(folder) if not suffixes or path.suffix.lower() in suffixes]
    return [path for path in paths if stat.S_ISREG(_mode(path))]


def files_below(root: Path, *suffixes: str) -> list[Path]:
    """Lists `files` of `root` and of all visible folders below it, sorted.

    Follows links, and lists each folder once.
    """
    folders: dict[Path, Path] = {}  # resolved path → path
    waiting = deque([root])
    while waiting:
        folder = waiting.popleft()
        if folders.setdefault(folder.resolve(), folder) is not folder:
            continue
        for inner in subfolders(folder):
            if inner.is_symlink():
                waiting.append(inner)
            else:
                waiting.appendleft(inner)
    paths = (path for folder in folders.values() for path in files(folder, *suffixes))
    return sorted(paths, key=lambda path: path.parts)


def photographs_below(root: Path) -> list[Path]:
    """Lists all photographs below `root`, sorted; DatasetError if a folder cannot be listed."""
    return files_below(root, *SUFFIXES)


def item_name(root: Path, photograph: Path) -> str:
    """Returns the path of `photograph` below `root` without suffix, POSIX form.

    Accented letters are composed: macOS stores decomposed ones, and no user can see the difference.
    """
    return composed(photograph.relative_to(root).with_suffix("").as_posix())


def composed(name: str) -> str:
    """Returns a name with composed accented letters."""
    return unicodedata.normalize("NFC", name)


def is_clutter(name: str) -> bool:
    """Returns whether files and folders with this name are ignored: hidden ones, or of a system."""
    return name.startswith(".") or name.lower() in _CLUTTER


def comparison_key(name: str) -> str:
    """Returns what names that differ only in case or in composed letters have in common."""
    return composed(name).casefold()


def _entries(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.iterdir(), key=lambda path: path.name)
    except FileNotFoundError:
        raise DatasetError(f"The folder {folder} does not exist. Give the root of the data set.") from None
    except NotADirectoryError:
        raise DatasetError(f"{folder} is a file, expected a folder. Give the root of the data set.") from None
    except OSError as error:
        raise DatasetError(
            f"The folder {folder} cannot be listed ({error.strerror}). Check its permissions and its disk."
        ) from error
    return [path for path in paths if not is_clutter(path.name)]


def _mode(path: Path) -> int:
    """The mode of `path`; that of a file for a broken or circular link."""
    try:
        return path.stat().st_mode
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP}:
            return stat.S_IFREG
        raise DatasetError(
            f"{path} cannot be read ({error.strerror}). Check the permissions of its folder: it needs both "
            "read (r) and search (x)."
        ) from error
