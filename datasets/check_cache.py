"""What checking found, kept from one start to the next: files that have not changed are not read again."""

import hashlib
import os
import pickle
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.drawn_mask import DrawnMask
from datasets.file_systems import is_url
from datasets.near_duplicates import THUMBNAIL_BYTES
from datasets.sample import Record
from datasets.shard_file import ShardFile
from segdec.images import ImageFile
from segdec.runtime.files import write_bytes_atomic

VERSION = 2
"""Rises with every change of what is checked: what was found before then no longer counts."""

MIN_FILE_AGE_S = 2.0
"""A file that was changed less than this ago is not kept: clocks of file systems may tick so slowly."""

SAVE_INTERVAL = 50_000
"""Photographs that are looked at between two writings: what an interrupted check leaves."""

DIGEST_BYTES = 32

_ROW = np.dtype(
    [
        ("key", "<u8"),
        ("state", "<u8"),
        ("shape", "<i4", 3),
        ("defect_px", "<i8"),
        ("pixels", "u1", DIGEST_BYTES),
        ("files", "u1", (2, DIGEST_BYTES)),
        ("masked", "?"),
        ("webp", "?"),
        ("small", "u1", THUMBNAIL_BYTES),
    ]
)


class CheckResult(NamedTuple):
    """What is kept of a photograph that can be used.

    Attributes:
        shape: Height, width (px) and channels.
        digests: SHA-256, in hex, of the photograph's file and the mask's, where there is one.
        defect_px: Pixels of the mask that show a defect.
        pixels: SHA-256, in hex, of size and pixels of the photograph.
        webp: Whether the photograph's file is WebP.
        small: Of `datasets.near_duplicates.normalized_thumbnail`.
    """

    shape: tuple[int, int, int]
    digests: tuple[str, ...]
    defect_px: int
    pixels: str
    webp: bool
    thumbnail: bytes


class FileState(NamedTuple):
    """A record's files as they are now, unread.

    Attributes:
        key: Of the record, what is to be known of it and how it is checked.
        state: Of size and times of its files.
        settled: Whether whatever changes them from now on is bound to change their times.
    """

    key: int
    state: int
    old_enough: bool


class CheckCache:
    """Facts of one data set by record, in a file that several processes may read and replace.

    A photograph is taken for unchanged while size, time of writing and time of change of its files are the
    same. What is only kept for some other supervision, threshold or setting does not count.

    Args:
        folder: Where the file lies; it is made when there is something to keep.
        root: Of the data set. Another one has another file.
        settings: Whatever else the findings depend on.
        trust: False knows nothing and keeps what is found, in place of what was.
    """

    def __init__(self, folder: Path, root: str, settings: str, *, trust: bool = True) -> None:
        place = root if is_url(root) else str(Path(root).resolve())
        settings = f"{VERSION}\0{settings}\0{place}"
        name = hashlib.sha256(settings.encode(errors="surrogateescape")).hexdigest()[:32]
        self.path = folder / f"{name}.checked"
        self._root = root
        self._trust = trust
        self._table = _read_table(self.path)
        self._keys = self._table["key"].copy()
        self._new: dict[int, bytes] = {}

    def state(self, record: Record) -> FileState | None:
        """Looks at the record's files, which are not read; None if one is gone."""
        terms = [record.name, record.label > 0, record.supervision, record.mask_threshold]
        if record.mask_values is not None:
            terms.append(record.mask_values)
        if isinstance(record.mask_file, DrawnMask | BoxedMask):
            terms.append(pickle.dumps(record.mask_file))
        stats: list[int] = []
        changed_ns = 0
        for file in (record.image_file, *_mask_files(record.mask_file)):
            if isinstance(file, ShardFile):  # it is read against its digest, whenever that is
                terms.append(file.sha256)
                continue
            stat = _stat(file)
            if stat is None:
                return None
            terms.append(str(file).removeprefix(self._root))
            stats += [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
            changed_ns = max(changed_ns, stat.st_ctime_ns)
        key, state = _hash(terms), _hash([*terms, *stats])
        return FileState(key, state, old_enough=changed_ns < time.time_ns() - MIN_FILE_AGE_S * 1e9)

    def find(self, state: FileState | None) -> CheckResult | None:
        """Returns what is known of files that have not changed."""
        row = self._row(state)
        return _facts(row) if row is not None and state is not None and row["state"] == state.state else None

    def find_by_digests(self, state: FileState | None, digests: tuple[str, ...]) -> CheckResult | None:
        """Returns what is known of files that hold what they held, whatever their times: a copy, say."""
        row = self._row(state)
        facts = None if row is None else _facts(row)
        return facts if facts and facts.digests == digests else None

    def store(self, state: FileState | None, facts: CheckResult) -> None:
        """Keeps what was found of files that were so before they were read; any thread may call it."""
        if state is None or not state.old_enough:
            return
        row = np.zeros((), _ROW)
        row["key"], row["state"], row["shape"], row["defect_px"] = *state[:2], facts.shape, facts.defect_px
        row["pixels"] = _from_hex(facts.pixels)
        row["masked"], row["webp"] = len(facts.digests) == 2, facts.webp
        row["small"] = np.frombuffer(facts.thumbnail, np.uint8)
        for number, digest in enumerate(facts.digests):
            row["files"][number] = _from_hex(digest)
        self._new[state.key] = row.tobytes()

    def save(self, *, parents: bool = False) -> None:
        """Writes what is new, together with what other processes have written meanwhile.

        A folder that cannot be written to costs a warning: nothing but time depends on it.

        Args:
            parents: Make the folders above `folder`, too; else nothing is written where they are missing.
        """
        new = dict(self._new)  # other threads go on
        folder = self.path.parent
        if not new or not (parents or folder.parent.is_dir()):
            return
        table = _merge(_read_table(self.path), np.frombuffer(b"".join(new.values()), _ROW))
        try:
            folder.mkdir(parents=parents, exist_ok=True)
            write_bytes_atomic(self.path, _digest(table.data) + table.tobytes())
        except OSError as error:
            print(
                f"warning: What was checked cannot be kept in '{folder}' ({error.strerror}): the next start "
                "reads all files again. Set data.checked_folder to a folder that may be written to.",
                file=sys.stderr,
            )
        for key in new:
            self._new.pop(key)

    def _row(self, state: FileState | None) -> Any:
        if state is None or not self._trust:
            return None
        place = int(np.searchsorted(self._keys, np.uint64(state.key)))
        found = place < len(self._keys) and self._keys[place] == state.key
        return self._table[place] if found else None


def _stat(file: ImageFile) -> os.stat_result | None:
    try:
        return file.stat() if isinstance(file, Path) else None
    except OSError:
        return None


def _hash(values: Sequence[object]) -> int:
    text = repr(values).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _mask_files(mask: ImageFile | None) -> list[ImageFile]:
    """What must be unchanged for the mask to be; a drawn one is known whole."""
    if mask is None or isinstance(mask, DrawnMask):
        return []
    return _mask_files(mask.mask) if isinstance(mask, BoxedMask) else [mask]


def _facts(row: Any) -> CheckResult:
    height, width, channels = row["shape"].tolist()
    files = row["files"][: 2 if row["masked"] else 1]
    digests = tuple(digest.tobytes().hex() for digest in files)
    defect_px, pixels = int(row["defect_px"]), row["pixels"].tobytes().hex()
    small = row["small"].tobytes()
    return CheckResult((height, width, channels), digests, defect_px, pixels, bool(row["webp"]), small)


def _from_hex(digest: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(digest), np.uint8)


def _merge(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Both, sorted by key; of two rows of one key the new one."""
    both = np.concatenate([new, old])
    _, first = np.unique(both["key"], return_index=True)
    return both[first]


def _read_table(path: Path) -> NDArray[Any]:
    nothing = np.zeros(0, _ROW)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return nothing
    except OSError as error:
        print(f"warning: '{path}' cannot be read ({error.strerror}): all files are checked.", file=sys.stderr)
        return nothing
    body = memoryview(data)[DIGEST_BYTES:]
    if len(data) < DIGEST_BYTES or len(body) % _ROW.itemsize or _digest(body) != data[:DIGEST_BYTES]:
        print(f"warning: '{path}' is damaged and not used: all files are checked again.", file=sys.stderr)
        return nothing
    return np.frombuffer(body, _ROW)


def _digest(data: memoryview) -> bytes:
    return hashlib.sha256(data).digest()
