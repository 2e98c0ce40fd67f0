"""The picture store: its protocol, and pictures as files of a folder.

Each picture has the SHA-256 of its bytes as its name. It is stored before its row. Until its row is
committed, the picture has a mark. After a crash, the next start checks only whether marked pictures
have rows.
"""

import math
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
"""Name of a file that marks a picture."""


FREE_SHARE_FACTOR = 0.5
"""Data sets and trainings leave this part of `record_free_share` free: photographs of the record alone fill
the disk up to the whole share, and the oldest ones make room for what the others store in the rest.
"""


class Space(NamedTuple):
    """Total and free bytes of a store."""

    total: int
    free: int

    def reserve(self, free_share: float) -> int:
        """Returns the bytes that data sets and trainings leave free.

        Args:
            free_share: The setting `record_free_share`, 0…1.
        """
        return math.ceil(FREE_SHARE_FACTOR * free_share * self.total)


class PictureStore(Protocol):
    """Stores encoded photographs; `location` is its folder or URL, for messages.

    Every method raises OSError if the store is full, missing or not writable, and ConnectionError if the
    store as a whole is unavailable.
    """

    location: str

    def read_id(self) -> str | None:
        """Returns the id of the record that the pictures belong to; None if the store has no id."""

    def write_id(self, store_id: str) -> None:
        """Stores the id of the record."""

    def put(self, sha256: bytes, data: bytes) -> None:
        """Stores and marks a picture durably: it survives a power loss."""

    def clear_marks(self, *digests: bytes) -> None:
        """Removes the marks of pictures whose rows are committed."""

    def marked(self) -> Iterable[bytes]:
        """Returns the marked pictures."""

    def is_empty(self) -> bool:
        """Returns whether there is no picture."""

    def get(self, sha256: bytes) -> bytes | None:
        """Returns a picture; None if it does not exist."""

    def contains(self, sha256: bytes) -> bool:
        """Returns whether a picture exists."""

    def delete(self, *digests: bytes) -> None:
        """Deletes pictures and their marks; a missing one is not an error."""

    def space(self) -> Space | None:
        """Returns the space of the store; None if it is unlimited."""


class FolderPictures:
    """Pictures as files of a folder on one file system; several services may share it.

    The mark of a picture is a hard link to its file. The folder is created if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.location = str(folder)
        self._folder, self._marks = folder, folder / MARKS_FOLDER
        self._marks.mkdir(parents=True, exist_ok=True)

    def read_id(self) -> str | None:
        path = self._folder / STORE_ID
        return path.read_text("ascii").strip() if path.exists() else None

    def write_id(self, store_id: str) -> None:
        write_text_atomic(self._folder / STORE_ID, store_id)

    def put(self, sha256: bytes, data: bytes) -> None:
        """Writes the file under the name of its mark, syncs it, and adds a hard link with its final name."""
        mark = self._marks / f"{sha256.hex()}.{uuid4().hex}"
        try:
            _write(mark, data)
        except BaseException:  # a partial file would occupy space on a full disk
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
        except FileNotFoundError:  # another service has removed the mark meanwhile
            if not path.exists():
                self.put(sha256, data)
                return
        fsync_folder(path.parent)

    def clear_marks(self, *digests: bytes) -> None:
        for sha256 in digests:
            for mark in self._marks.glob(f"{sha256.hex()}.*"):
                mark.unlink(missing_ok=True)

    def marked(self) -> Iterator[bytes]:
        for mark in self._marks.iterdir():
            if named := MARK.fullmatch(mark.name):  # NFS and desktops create files of their own there
                yield bytes.fromhex(named["sha256"])

    def is_empty(self) -> bool:
        return next(self._folder.glob(f"{2 * '[0-9a-f]'}/*"), None) is None

    def get(self, sha256: bytes) -> bytes | None:
        try:
            return self._path(sha256).read_bytes()
        except FileNotFoundError:
            return None

    def contains(self, sha256: bytes) -> bool:
        return self._path(sha256).exists()

    def delete(self, *digests: bytes) -> None:
        for sha256 in digests:
            self._path(sha256).unlink(missing_ok=True)
            self.clear_marks(sha256)

    def space(self) -> Space:
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
