"""A folder that receives photographs, and the state of each one, which survives a crash.

FOLDER/NAME → FOLDER/.inspecting/ID/NAME → FOLDER/done/NAME or FOLDER/failed/NAME

NAME includes subfolders, such as 2026-11-25/A1.png, so that photographs of two days stay apart.

Each step is one rename. The first rename assigns the id and is on disk before the service is asked, so that a
later process asks again under the same id.
"""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from segdec.runtime.files import fsync_folder, remove_temporary_files, write_text_atomic

INSPECTING = ".inspecting"
DONE = "done"
FAILED = "failed"
RESULTS = (DONE, FAILED)
MAX_NAME_BYTES = 200
"""Longest name that is kept: file systems allow 255 bytes, and a suffix may be added."""


@dataclass(frozen=True)
class Claim:
    """A photograph that is being inspected; its id was assigned when it was claimed.

    `name` is its path below the folder.
    """

    path: Path
    id: str
    name: str


class DropFolder:
    """The folder that the camera writes to. Only one process at a time may use it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.inspecting = folder, folder / INSPECTING

    def prepare(self) -> None:
        """Creates missing subfolders; users may have moved them away."""
        for name in (INSPECTING, *RESULTS):
            (self._folder / name).mkdir(exist_ok=True)

    def remove_temporary_files(self) -> None:
        """Removes partly written answers of a killed process."""
        for name in RESULTS:
            for folder, _, _ in os.walk(self._folder / name):
                remove_temporary_files(Path(folder))

    def claims(self) -> Iterator[Claim]:
        """Yields the claimed photographs: after a start, those that the previous process did not finish."""
        for place in sorted(self.inspecting.iterdir()):
            if place.is_dir():
                paths = [Path(folder, file) for folder, _, files in os.walk(place) for file in files]
                yield from (self._claim(path, place) for path in paths)
                if not paths:
                    _remove_empty_folders(place)

    def claim(self, path: Path) -> Claim | None:
        """Claims a photograph durably: its id survives a power loss. None if the file no longer exists.

        Raises:
            OSError: If the file cannot be moved.
        """
        place = self.inspecting / uuid4().hex
        claimed = self._claim(place / path.relative_to(self._folder), place)
        claimed.path.parent.mkdir(parents=True)
        try:
            path.rename(claimed.path)
        except OSError as error:
            _remove_empty_folders(place)
            if isinstance(error, FileNotFoundError):
                return None
            raise
        for folder in _parents_below(claimed.path, self._folder):
            fsync_folder(folder)
        return claimed

    def finish(self, claim: Claim, outcome: str, details: str | None) -> Path:
        """Moves a photograph to DONE or FAILED and returns its new path; `details` become NAME.json there."""
        target = self._free_path(outcome, claim)
        if details is not None:  # written first, so that an interruption repeats it
            write_text_atomic(target.with_name(f"{target.name}.json"), details)
        claim.path.rename(target)
        for folder in _parents_below(target, self._folder):
            fsync_folder(folder)
        with suppress(OSError):  # other files in it are claimed as well
            for folder in _parents_below(claim.path, self.inspecting):
                folder.rmdir()
        return target

    @staticmethod
    def _claim(path: Path, place: Path) -> Claim:
        return Claim(path, place.name, path.relative_to(place).as_posix())

    def _free_path(self, outcome: str, claim: Claim) -> Path:
        """Returns an unused path, and creates its folder: cameras may restart their numbering."""
        results = self._folder / outcome
        target = results / claim.name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):  # a result has the name of the folder
            return results / f"{target.stem[:40]}_{claim.id}{target.suffix}"
        if len(os.fsencode(target.name)) <= MAX_NAME_BYTES and not os.path.lexists(target):
            return target
        return target.with_name(f"{target.stem[:40]}_{claim.id}{target.suffix}")


def _parents_below(path: Path, top: Path) -> list[Path]:
    """The folders between a file and `top`, the innermost first."""
    return list(itertools.takewhile(lambda folder: folder != top, path.parents))


def _remove_empty_folders(top: Path) -> None:
    """Removes a folder and its subfolders unless a file is in them."""
    for folder, _, _ in os.walk(top, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()
