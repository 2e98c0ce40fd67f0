"""A folder that receives photographs, and the state of each one, which survives a crash.

FOLDER/NAME → FOLDER/.inspecting/ID/NAME → FOLDER/done/NAME or FOLDER/failed/NAME

Each step is one rename. The first rename assigns the id and is on disk before the service is asked, so that a
later process asks again under the same id.
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
"""Longest name that is kept: file systems allow 255 bytes, and a suffix may be added."""


@dataclass(frozen=True)
class Claim:
    """A photograph that is being inspected; its id was assigned when it was claimed."""

    path: Path
    id: str


class DropFolder:
    """The folder that the camera writes to. Only one process at a time may use it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.inspecting = folder, folder / INSPECTING

    def prepare(self) -> None:
        """Creates missing subfolders; users may have moved them away."""
        for name in (INSPECTING, DONE, FAILED):
            (self._folder / name).mkdir(exist_ok=True)

    def remove_temporary_files(self) -> None:
        """Removes partly written answers of a killed process."""
        for name in (DONE, FAILED):
            remove_temporary_files(self._folder / name)

    def claims(self) -> Iterator[Claim]:
        """Yields the claimed photographs: after a start, those that the previous process did not finish."""
        for place in sorted(self.inspecting.iterdir()):
            if place.is_dir():
                found = list(place.iterdir())
                yield from (Claim(path, place.name) for path in found)
                if not found:
                    place.rmdir()

    def claim(self, path: Path) -> Claim | None:
        """Claims a photograph durably: its id survives a power loss. None if the file no longer exists."""
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

    def finish(self, claim: Claim, outcome: str, details: str | None) -> Path:
        """Moves a photograph to DONE or FAILED and returns its new path; `details` become NAME.json there."""
        target = self._free_path(outcome, claim)
        if details is not None:  # written first, so that an interruption repeats it
            write_text_atomic(target.with_name(f"{target.name}.json"), details)
        claim.path.rename(target)
        fsync_folder(target.parent)
        with suppress(OSError):  # other files in it are claimed as well
            claim.path.parent.rmdir()
        return target

    def _free_path(self, outcome: str, claim: Claim) -> Path:
        """Returns an unused path: cameras may restart their numbering."""
        target = self._folder / outcome / claim.path.name
        if len(os.fsencode(target.name)) <= MAX_NAME_BYTES and not os.path.lexists(target):
            return target
        return target.with_name(f"{target.stem[:40]}_{claim.id}{target.suffix}")
