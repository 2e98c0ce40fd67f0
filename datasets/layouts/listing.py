"""What lies in a folder, in a fixed order, with one clear error if that cannot be told."""

import errno
import stat
from pathlib import Path

from segdec.errors import DatasetError

_CLUTTER = frozenset({"thumbs.db", "desktop.ini", "__macosx"})


def subfolders(folder: Path) -> list[Path]:
    """Lists visible folders directly below `folder`, sorted by name; DatasetError if it cannot be listed."""
    return [path for path in _entries(folder) if stat.S_ISDIR(_mode(path))]


def files(folder: Path) -> list[Path]:
    """Lists visible files directly below `folder`, sorted by name; DatasetError if it cannot be listed.

    Links that lead nowhere or in a circle are among them, so that reading them names them: a photograph
    that was moved away must not be missing in silence.
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
    """Type bits of what `path` leads to; those of a file for a link that leads nowhere or in a circle."""
    try:
        return path.stat().st_mode
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP}:
            return stat.S_IFREG
        raise DatasetError(
            f"{path} cannot be examined ({error.strerror}). Check the permissions of its folder: it must "
            "be searchable (x) as well as readable."
        ) from error
