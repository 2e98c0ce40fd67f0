"""Lists folders in a fixed order, with one clear error if that fails."""

import errno
import stat
from pathlib import Path

from segdec.errors import DatasetError

_CLUTTER = frozenset({"thumbs.db", "desktop.ini", "__macosx"})


def subfolders(folder: Path) -> list[Path]:
    """Lists the visible folders in `folder`, sorted by name; DatasetError if that fails."""
    return [path for path in _entries(folder) if stat.S_ISDIR(_mode(path))]


def files(folder: Path) -> list[Path]:
    """Lists the visible files in `folder`, sorted by name; DatasetError if that fails.

    Includes broken and circular links, so that reading them reports the missing photograph.
    """
    return [path for path in _entries(folder) if stat.S_ISREG(_mode(path))]


def _entries(folder: Path) -> list[Path]:
    try:
        found = sorted(folder.iterdir())
    except FileNotFoundError:
        raise DatasetError(f"The folder {folder} does not exist. Give the root of the data set.") from None
    except NotADirectoryError:
        raise DatasetError(f"{folder} is a file, expected a folder. Give the root of the data set.") from None
    except OSError as error:
        raise DatasetError(
            f"The folder {folder} cannot be listed ({error.strerror}). Check its permissions and its disk."
        ) from error
    return [path for path in found if not path.name.startswith(".") and path.name.lower() not in _CLUTTER]


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
