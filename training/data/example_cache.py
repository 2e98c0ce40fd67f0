"""Keeps decoded images: in memory first, then in a file that has no name, then not at all."""

import errno
import math
import os
import sys
import tempfile
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ConfigError

BYTES_A_MB = 1_000_000

Key = int | str
"""A training example has a number, a photograph that is kept as it was decoded its record's name."""


@dataclass(frozen=True)
class Example:
    """A prepared sample: as the network takes it, not yet augmented.

    Attributes:
        image: uint8 [h, w, C].
        mask: uint8 [h, w], 255 where there is a defect; None where there is none, or none is known.
        supervised: False for a defective image whose mask is not known.
    """

    image: NDArray[np.uint8]
    mask: NDArray[np.uint8] | None
    supervised: bool = True

    @property
    def nbytes(self) -> int:
        """Memory it takes, bytes."""
        return self.image.nbytes + (0 if self.mask is None else self.mask.nbytes)


@dataclass(frozen=True)
class _Place:
    """Where an example lies in the file: its image, and behind it its mask, where there is one."""

    offset: int
    shape: tuple[int, ...]
    masked: bool
    supervised: bool


class ExampleCache:
    """Examples by key; may be used by several threads.

    The file has no name, so it goes with the process, however that ends, and is never found stale. When
    its disk turns out full, a warning says so and what does not fit is no longer kept.

    Args:
        memory_mb: Largest size in memory, MB.
        folder: Where the file lies; None keeps examples in memory only.
        disk_mb: Largest size of the file, MB.

    Raises:
        ConfigError: If no file can be made in `folder`.
    """

    def __init__(self, memory_mb: int, folder: Path | None = None, disk_mb: int = 0) -> None:
        self._memory: dict[Key, Example] = {}
        self._free_memory = memory_mb * BYTES_A_MB
        self._file = _open(folder) if folder is not None else None
        if self._file is not None:
            weakref.finalize(self, self._file.close)
        self._free_disk = disk_mb * BYTES_A_MB
        self._places: dict[Key, _Place] = {}
        self._end = 0
        self._lock = threading.Lock()

    def get(self, key: Key) -> Example | None:
        """Returns the example, or None if it was not kept."""
        kept = self._memory.get(key)
        if kept is not None or self._file is None or key not in self._places:
            return kept
        place = self._places[key]
        image = _read_array(self._file, place.shape, place.offset)
        if not place.masked:
            return Example(image, None, place.supervised)
        mask = _read_array(self._file, place.shape[:2], place.offset + image.nbytes)
        return Example(image, mask, place.supervised)

    def put(self, key: Key, example: Example) -> None:
        """Keeps the example where there is room for it."""
        with self._lock:
            if key in self._memory or key in self._places:
                return
            if example.nbytes <= self._free_memory:
                self._free_memory -= example.nbytes
                self._memory[key] = example
            elif self._file is not None and example.nbytes <= self._free_disk:
                self._free_disk -= example.nbytes
                self._write(self._file, key, example)

    def _write(self, file: BinaryIO, key: Key, example: Example) -> None:
        mask = b"" if example.mask is None else example.mask.tobytes()
        data = example.image.tobytes() + mask
        try:
            if os.pwrite(file.fileno(), data, self._end) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._free_disk = 0
            print(
                f"warning: data.cache_folder takes no more images ({error.strerror}); the others are read "
                "again each time, which is slower.",
                file=sys.stderr,
            )
            return
        self._places[key] = _Place(self._end, example.image.shape, bool(mask), example.supervised)
        self._end += len(data)


def _open(folder: Path) -> BinaryIO:
    try:
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    except OSError as error:
        raise ConfigError(
            f"data.cache_folder = '{folder}' cannot hold a file ({error.strerror}). Expected a folder that "
            "exists and may be written to."
        ) from error


def _read_array(file: BinaryIO, shape: tuple[int, ...], offset: int) -> NDArray[np.uint8]:
    return np.frombuffer(os.pread(file.fileno(), math.prod(shape), offset), np.uint8).reshape(shape)
