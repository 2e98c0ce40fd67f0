"""A folder into which photographs are dropped, and the way of each through it, which outlives any end.

FOLDER/NAME → FOLDER/.inspecting/ID/NAME → FOLDER/done/NAME or FOLDER/failed/NAME

Each step is one renaming. The id is chosen by the first, which is on the disk before anybody is asked: who
goes on with the photograph later asks under the same one.
"""

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
MAX_NAME_BYTES = 200
"""Longest name that is kept: file systems allow 255 bytes, and more comes behind it."""


@dataclass(frozen=True)
class Claim:
    """A photograph that is being inspected.

    Attributes:
        path: Where it lies.
        id: Was chosen when it came.
    """

    path: Path
    id: str


class DropFolder:
    """The folder. One process at a time works on it.

    Args:
        folder: That the camera writes to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.inspecting = folder, folder / INSPECTING

    def prepare(self) -> None:
        """Makes what is missing below it: people move away what is done.

        Raises:
            OSError: If it cannot be written.
        """
        for name in (INSPECTING, DONE, FAILED):
            (self._folder / name).mkdir(exist_ok=True)

    def remove_temporary_files(self) -> None:
        """Removes the half-written answers that a killed process left."""
        for name in (DONE, FAILED):
            remove_temporary_files(self._folder / name)

    def claims(self) -> Iterator[Claim]:
        """Returns what is being inspected: after a start what was when the last one ended."""
        for place in sorted(self.inspecting.iterdir()):
            if place.is_dir():
                found = list(place.iterdir())
                yield from (Claim(path, place.name) for path in found)
                if not found:
                    place.rmdir()

    def claim(self, path: Path) -> Claim | None:
        """Takes a photograph; None if it has gone. When this returns, its id survives a loss of power."""
        place = self.inspecting / uuid4().hex
        place.mkdir()
        claimed = Claim(place / path.name, place.name)
        try:
            path.rename(claimed.path)
        except FileNotFoundError:
            place.rmdir()
            return None
        fsync_folder(place)
        fsync_folder(self.inspecting)
        return claimed

    def finish(self, claim: Claim, outcome: str, told: str | None) -> Path:
        """Moves a photograph to where it stays, and writes what is told of it beside; returns where it is.

        Args:
            claim: The photograph.
            outcome: DONE or FAILED.
            told: Goes into NAME.json; None: nothing.
        """
        target = self._free(outcome, claim)
        if told is not None:  # first: who is interrupted here writes it again
            write_text_atomic(target.with_name(f"{target.name}.json"), told)
        claim.path.rename(target)
        fsync_folder(target.parent)
        with suppress(OSError):  # what else lies there is claimed too
            claim.path.parent.rmdir()
        return target

    def _free(self, outcome: str, claim: Claim) -> Path:
        """Finds a name that no other photograph has: a camera may begin to count anew."""
        target = self._folder / outcome / claim.path.name
        if len(os.fsencode(target.name)) <= MAX_NAME_BYTES and not os.path.lexists(target):
            return target
        return target.with_name(f"{target.stem[:40]}_{claim.id}{target.suffix}")
