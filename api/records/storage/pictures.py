"""Where the pictures lie, each under the SHA-256 of its bytes: the protocol of it, and a folder.

A picture comes before its row. Until the row is there too, the store holds a mark of it, so that a start
finds what a killed service left without looking through all of them.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import uuid4

from segdec.runtime.files import fsync_folder, write_text_atomic

MARKS_FOLDER = "unsettled"
STORE_ID = "store-id"
MARK = re.compile(r"(?P<sha256>[0-9a-f]{64})\.[0-9a-f]+")
"""Name of the file that marks a picture."""


class Space(NamedTuple):
    """Bytes of a store, and what is left of them."""

    total: int
    free: int


class PictureStore(Protocol):
    """Keeps encoded photographs.

    Every method raises OSError where the store is full, gone or not writable, and ConnectionError where it is
    no picture's fault: then none can be kept.

    Attributes:
        place: Of the store, in words.
    """

    place: str

    def read_id(self) -> str | None:
        """Returns the id of the record that the pictures belong to; None if none is written there."""

    def write_id(self, store_id: str) -> None:
        """Writes down to which record they belong."""

    def put(self, sha256: bytes, data: bytes) -> None:
        """Keeps `data`, which survives a loss of power when this returns, and marks it as unsettled."""

    def clear_marks(self, *digests: bytes) -> None:
        """Removes the marks of pictures, whose rows are there."""

    def marked(self) -> Iterable[bytes]:
        """Returns the pictures that are marked."""

    def get(self, sha256: bytes) -> bytes | None:
        """Returns a picture; None if it is not there."""

    def contains(self, sha256: bytes) -> bool:
        """Returns whether a picture is there."""

    def delete(self, *digests: bytes) -> None:
        """Removes pictures and their marks; one that is not there is no error."""

    def space(self) -> Space | None:
        """Returns how much there is; None where it has no end."""


class FolderPictures:
    """Pictures as files of one folder on one file system; several services may share it.

    The mark of a picture is a second name of its file, under which it is written.

    Args:
        folder: Is made where it is missing.

    Raises:
        OSError: If it cannot be made or written.
    """

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder, self._unsettled = folder, folder / MARKS_FOLDER
        self._unsettled.mkdir(parents=True, exist_ok=True)

    def read_id(self) -> str | None:
        """Reads the file that has it."""
        path = self._folder / STORE_ID
        return path.read_text("ascii").strip() if path.exists() else None

    def write_id(self, store_id: str) -> None:
        """Writes the file."""
        write_text_atomic(self._folder / STORE_ID, store_id)

    def put(self, sha256: bytes, data: bytes) -> None:
        """Writes the file, and gives it its name once it is on the disk."""
        mark = self._unsettled / f"{sha256.hex()}.{uuid4().hex}"
        try:
            _write(mark, data)
        except BaseException:  # half a file of a full disk is in the way of all that would free it
            with suppress(OSError):
                mark.unlink(missing_ok=True)
            raise
        path = self._path(sha256)
        if not path.parent.exists():
            path.parent.mkdir(exist_ok=True)
            fsync_folder(self._folder)
        try:
            path.hardlink_to(mark)
        except FileExistsError:
            pass
        except FileNotFoundError:  # another service has settled or swept its mark meanwhile
            if not path.exists():
                self.put(sha256, data)
                return
        fsync_folder(path.parent)

    def clear_marks(self, *digests: bytes) -> None:
        """Removes the second names."""
        for sha256 in digests:
            for mark in self._unsettled.glob(f"{sha256.hex()}.*"):
                mark.unlink(missing_ok=True)

    def marked(self) -> Iterator[bytes]:
        """Reads the second names."""
        for mark in self._unsettled.iterdir():
            if named := MARK.fullmatch(mark.name):  # NFS and desktops put files of their own there
                yield bytes.fromhex(named["sha256"])

    def get(self, sha256: bytes) -> bytes | None:
        """Reads the file."""
        try:
            return self._path(sha256).read_bytes()
        except FileNotFoundError:
            return None

    def contains(self, sha256: bytes) -> bool:
        """Looks whether there is a file."""
        return self._path(sha256).exists()

    def delete(self, *digests: bytes) -> None:
        """Removes the files under all their names."""
        for sha256 in digests:
            self._path(sha256).unlink(missing_ok=True)
            self.clear_marks(sha256)

    def space(self) -> Space:
        """Asks the file system."""
        usage = shutil.disk_usage(self._folder)
        return Space(usage.total, usage.free)

    def _path(self, sha256: bytes) -> Path:
        name = sha256.hex()
        return self._folder / name[:2] / name


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
