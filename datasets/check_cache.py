"""Check results on disk: files that have not changed are not read again at the next start."""

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

from datasets.annotations.computed_mask import ComputedMask, source_files
from datasets.exif_rotation import Evidence
from datasets.file_systems import is_url
from datasets.near_duplicates import THUMBNAIL_BYTES
from datasets.sample import DataSetItem
from datasets.shard_file import ShardFile
from segdec.images import ImageFile
from segdec.runtime.files import write_bytes_atomic

VERSION = 6
"""Raise it with every change of the checks: older results are then ignored."""

MIN_FILE_AGE_S = 2.0
"""Results for files that changed less than this ago are not stored: file systems may have coarse clocks."""

SAVE_INTERVAL = 50_000
"""Photographs between two writes of the cache."""

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
        ("bit_depth", "u1"),
        ("blank", "?"),
        ("several_pictures", "?"),
        ("rotation", "u1"),
    ]
)


class CheckResult(NamedTuple):
    """The result of checking one usable photograph.

    Attributes:
        shape: Height, width (px) and channels.
        digests: SHA-256, in hex, of the photograph's file and of the mask's, if there is one.
        defect_px: Number of defective mask pixels.
        pixels: SHA-256, in hex, of size and pixels of the photograph.
        webp: Whether the photograph's file is WebP.
        thumbnail: From `datasets.near_duplicates.normalized_thumbnail`.
        bit_depth: Bits per channel of the photograph's file.
        blank: Whether all colours of its palette are the same.
        several_pictures: Whether the photograph's file or a mask file has several pictures.
        rotation: What shows whether the annotation was drawn before the EXIF rotation.
    """

    shape: tuple[int, int, int]
    digests: tuple[str, ...]
    defect_px: int
    pixels: str
    webp: bool
    thumbnail: bytes
    bit_depth: int
    blank: bool
    several_pictures: bool
    rotation: Evidence


class FileState(NamedTuple):
    """The state of an item's files, without reading them."""

    key: int
    """Hash of the item and of how it is checked."""
    state: int
    """Hash of `key`, sizes and times of the files."""
    old_enough: bool
    """Whether any later change of the files will be visible in their times."""


class CheckCache:
    """Check results of one data set, in a file that several processes may read and replace.

    A file counts as unchanged while its size, modification time and change time are the same. `folder` has a
    cache file for each root and `settings`, on which the results depend. Without `trust`, stored results are
    ignored and replaced.
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

    def state(self, item: DataSetItem) -> FileState | None:
        """Returns the state of the item's files, or None if one is missing."""
        terms = [item.name, item.label > 0, item.supervision, item.mask_threshold, item.drawn_on]
        if item.mask_values is not None:
            terms.append(item.mask_values)
        if isinstance(item.mask_file, ComputedMask):
            terms.append(pickle.dumps(item.mask_file))
        stats: list[int] = []
        changed_ns = 0
        for file in (item.image_file, *source_files(item.mask_file)):
            if isinstance(file, ShardFile):  # every read compares it with its digest
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

    def find(self, state: FileState | None, digests: tuple[str, ...] = ()) -> CheckResult | None:
        """Returns the result if the files (with `digests`: their contents) are unchanged, otherwise None."""
        if state is None or not self._trust:
            return None
        index = int(np.searchsorted(self._keys, np.uint64(state.key)))
        if index == len(self._keys) or self._keys[index] != state.key:
            return None
        facts = _check_result(self._table[index])
        same = facts.digests == digests if digests else self._table[index]["state"] == state.state
        return facts if same else None

    def store(self, state: FileState | None, facts: CheckResult) -> None:
        """Stores a result; `state` must be from before the files were read. Thread-safe."""
        if state is None or not state.old_enough:
            return
        row = np.zeros((), _ROW)
        row["key"], row["state"], row["shape"], row["defect_px"] = *state[:2], facts.shape, facts.defect_px
        row["pixels"] = _from_hex(facts.pixels)
        row["masked"], row["webp"] = len(facts.digests) == 2, facts.webp
        row["bit_depth"], row["blank"] = facts.bit_depth, facts.blank
        row["several_pictures"], row["rotation"] = facts.several_pictures, facts.rotation
        row["small"] = np.frombuffer(facts.thumbnail, np.uint8)
        row["files"][: len(facts.digests)] = list(map(_from_hex, facts.digests))
        self._new[state.key] = row.tobytes()

    def save(self, *, parents: bool = False) -> None:
        """Merges new results into the file; prints a warning if that fails.

        Without `parents`, nothing is written if a parent of `folder` is missing.
        """
        new = dict(self._new)  # other threads may add more
        folder = self.path.parent
        if not new or not (parents or folder.parent.is_dir()):
            return
        # Of two rows with one key, the new one.
        table = np.concatenate([np.frombuffer(b"".join(new.values()), _ROW), _read_table(self.path)])
        table = table[np.unique(table["key"], return_index=True)[1]]
        try:
            folder.mkdir(parents=parents, exist_ok=True)
            write_bytes_atomic(self.path, _digest(table.data) + table.tobytes())
        except OSError as error:
            print(
                f"warning: The check results cannot be written to '{folder}' ({error.strerror}): the next "
                "start reads all files again. Set data.checked_folder to a writable folder.",
                file=sys.stderr,
            )
        for key in new:
            self._new.pop(key)


def _stat(file: ImageFile) -> os.stat_result | None:
    try:
        return file.stat() if isinstance(file, Path) else None
    except OSError:
        return None


def _hash(values: Sequence[object]) -> int:
    text = repr(values).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _check_result(row: Any) -> CheckResult:
    height, width, channels = row["shape"].tolist()
    files = row["files"][: 2 if row["masked"] else 1]
    digests = tuple(digest.tobytes().hex() for digest in files)
    defect_px, pixels = int(row["defect_px"]), row["pixels"].tobytes().hex()
    small = row["small"].tobytes()
    webp, bit_depth, blank = bool(row["webp"]), int(row["bit_depth"]), bool(row["blank"])
    rest = webp, small, bit_depth, blank, bool(row["several_pictures"]), Evidence(int(row["rotation"]))
    return CheckResult((height, width, channels), digests, defect_px, pixels, *rest)


def _from_hex(digest: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(digest), np.uint8)


def _read_table(path: Path) -> NDArray[Any]:
    try:
        data = path.read_bytes()
        body = memoryview(data)[DIGEST_BYTES:]
        if not len(body) % _ROW.itemsize and _digest(body) == data[:DIGEST_BYTES]:
            return np.frombuffer(body, _ROW)
        print(f"warning: '{path}' is damaged: checking all files.", file=sys.stderr)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        print(f"warning: '{path}' cannot be read ({error.strerror}): checking all files.", file=sys.stderr)
    return np.zeros(0, _ROW)


def _digest(data: memoryview) -> bytes:
    return hashlib.sha256(data).digest()
