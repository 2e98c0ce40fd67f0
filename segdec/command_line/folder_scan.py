"""Lists the photographs below a watched folder once, and counts what it ignores."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from segdec.command_line.drop_folder import INSPECTING, RESULTS
from segdec.images import SUFFIXES

HIDDEN = (".", "~", "$")
"""First characters of hidden and temporary files and folders."""


@dataclass
class Ignored:
    """How many files or folders are ignored for one reason, and the path of the first one.

    `first` is None for a reason that names a folder.
    """

    count: int
    first: str | None


class FolderScan:
    """One scan of a folder and its subfolders.

    Links to folders are followed, after the real folders; a folder is scanned once. Results are skipped.
    `skipped` are reasons to ignore the photographs of a folder, by its path.

    Attributes:
        ignored: What was ignored, by reason.
    """

    def __init__(self, root: Path, skipped: Mapping[Path, str]) -> None:
        self._root, self._skipped = root, skipped
        self._pending: list[str] = [""]
        self._links: list[str] = []
        self._seen = {_identity(root / name) for name in RESULTS if (root / name).exists()}
        self._above = {_identity(folder) for folder in root.resolve().parents}
        self.ignored: dict[str, Ignored] = {}

    def photographs(self) -> Iterator[tuple[os.stat_result, str]]:
        """Yields status and path, relative to the root, of each file with an image suffix.

        Raises:
            OSError: If the root cannot be read.
        """
        while self._pending or self._links:
            folder = (self._pending or self._links).pop()
            try:
                entries = self._entries(folder)
            except OSError as error:
                if not folder:
                    raise
                if not isinstance(error, FileNotFoundError):  # removed since it was listed
                    self._ignore_folder(folder, error.strerror or str(error))
                continue
            why = self._skipped.get(self._root / folder)
            for entry in entries:
                for status, name in self._photograph(entry, os.path.join(folder, entry.name)):  # noqa: PTH118
                    if why is None:
                        yield status, name
                    else:
                        self._ignore_folder(folder, why)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        path = self._root / folder
        identity = _identity(path)
        if identity in self._seen:
            return []
        self._seen.add(identity)
        if reason := self._reason_to_skip(path, identity):
            self._ignore_folder(folder, reason)
            return []
        with os.scandir(path) as entries:
            return list(entries)

    def _reason_to_skip(self, path: Path, identity: tuple[int, int]) -> str | None:
        if identity in self._above:
            return "it contains the watched folder"
        if path != self._root and (path / INSPECTING).exists():
            return f"another command watches it, or did: remove its '{INSPECTING}' to watch it here"
        return None

    def _photograph(self, entry: os.DirEntry[str], name: str) -> Iterator[tuple[os.stat_result, str]]:
        """Yields the photograph of an entry, if it is one; keeps a subfolder for later."""
        try:
            if entry.is_dir():
                if entry.name.startswith(HIDDEN):
                    if name != INSPECTING:
                        self._ignore("hidden folders", name)
                else:
                    (self._links if entry.is_symlink() else self._pending).append(name)
            elif reason := _reason_to_ignore(entry):
                self._ignore(reason, name)
            else:
                yield entry.stat(follow_symlinks=False), name
        except FileNotFoundError:  # removed since it was listed
            return

    def _ignore(self, reason: str, name: str | None) -> None:
        self.ignored.setdefault(reason, Ignored(0, name)).count += 1

    def _ignore_folder(self, name: str, reason: str) -> None:
        self._ignore(f"the folder {name}: {reason}", None)


def _reason_to_ignore(entry: os.DirEntry[str]) -> str | None:
    suffix = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122 # a Path per file is slow
    if entry.name.startswith(HIDDEN):
        return "hidden or temporary files"
    if suffix not in SUFFIXES:
        return f"files of the type '{suffix}'"
    if entry.is_symlink():
        return "links to files"
    return None if entry.is_file(follow_symlinks=False) else "devices and pipes"


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
