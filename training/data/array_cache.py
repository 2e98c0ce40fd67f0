"""Keeps arrays that are used again: in memory first, then in a file that has no name, then not at all."""

import errno
import math
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ConfigError

BYTES_PER_MB = 1_000_000

Arrays = Mapping[str, NDArray[Any]]
"""What belongs together, by name: an image and its mask, the features of an image."""


@dataclass(frozen=True)
class _Place:
    """Where an array lies in the file."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class ArrayCache:
    """Arrays by key; may be used by several threads.

    The file has no name, so it goes with the process, however that ends, and is never found stale. When
    its disk turns out full, a warning says so and what does not fit is no longer kept.

    Args:
        memory_mb: Largest size in memory, MB.
        folder: Where the file lies; None keeps arrays in memory only.
        disk_mb: Largest size of the file, MB.

    Raises:
        ConfigError: If no file can be made in `folder`.
    """

    def __init__(self, memory_mb: int, folder: Path | None = None, disk_mb: int = 0) -> None:
        self._memory: dict[Hashable, Arrays] = {}
        self._free_memory = memory_mb * BYTES_PER_MB
        self._folder = folder
        self._file = _open(folder) if folder is not None else None
        if self._file is not None:
            weakref.finalize(self, self._file.close)
        self._free_disk = 0 if self._file is None else disk_mb * BYTES_PER_MB
        self._places: dict[Hashable, dict[str, _Place]] = {}
        self._end = 0
        self._lock = threading.Lock()

    @property
    def free_bytes(self) -> int:
        """What still finds room."""
        return self._free_memory + self._free_disk

    def reserve(self, size: int) -> Self:
        """Makes a cache of its own of the free room, up to `size` bytes of it; nothing else fills that."""
        with self._lock:
            memory = min(size, self._free_memory)
            disk = min(size - memory, self._free_disk)
            self._free_memory -= memory
            self._free_disk -= disk
        part = type(self)(0, self._folder if disk else None)
        part._free_memory, part._free_disk = memory, disk
        return part

    def get(self, key: Hashable) -> Arrays | None:
        """Returns the arrays, or None if they were not kept."""
        kept = self._memory.get(key)
        if kept is not None or self._file is None or key not in self._places:
            return kept
        file = self._file
        return {name: _read_array(file, place) for name, place in self._places[key].items()}

    def put(self, key: Hashable, arrays: Arrays) -> None:
        """Keeps the arrays where there is room for them; nobody may change them any more."""
        size = sum(array.nbytes for array in arrays.values())
        with self._lock:
            if key in self._memory or key in self._places:
                return
            if size <= self._free_memory:
                self._free_memory -= size
                self._memory[key] = arrays
            elif self._file is not None and size <= self._free_disk:
                self._free_disk -= size
                self._write(self._file, key, arrays)

    def _write(self, file: BinaryIO, key: Hashable, arrays: Arrays) -> None:
        data = b"".join(array.tobytes() for array in arrays.values())
        try:
            if os.pwrite(file.fileno(), data, self._end) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._free_disk = 0
            print(
                f"warning: data.cache_folder takes no more ({error.strerror}); what finds no room is read "
                "or computed again each time, which is slower.",
                file=sys.stderr,
            )
            return
        places = {}
        for name, array in arrays.items():
            places[name] = _Place(self._end, array.shape, array.dtype)
            self._end += array.nbytes
        self._places[key] = places


def _open(folder: Path) -> BinaryIO:
    try:
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    except OSError as error:
        raise ConfigError(
            f"data.cache_folder = '{folder}' cannot hold a file ({error.strerror}). Expected a folder that "
            "exists and may be written to."
        ) from error


def _read_array(file: BinaryIO, place: _Place) -> NDArray[Any]:
    size = math.prod(place.shape) * place.dtype.itemsize
    data = os.pread(file.fileno(), size, place.offset)
    return np.frombuffer(data, place.dtype).reshape(place.shape)
