"""A cache of arrays in memory, then in an unnamed file; if both are full, arrays are not stored."""

import errno
import math
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ConfigError

BYTES_PER_MB = 1_000_000

Arrays = Mapping[str, NDArray[Any]]
"""Arrays of one entry by name: an image and its mask, the features of an image."""


class _Location(NamedTuple):
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class ArrayCache:
    """Arrays by key; thread-safe. The first `memory_mb` are in memory, then `disk_mb` in a file in `folder`.

    The file has no name: it disappears with the process, however that ends. If its disk is full, a warning is
    printed once and nothing more is stored. Raises a `ConfigError` if no file can be created in `folder`.
    """

    def __init__(self, memory_mb: int, folder: Path | None = None, disk_mb: int = 0) -> None:
        self._memory: dict[Hashable, Arrays] = {}
        self._free_memory = memory_mb * BYTES_PER_MB
        self._folder = folder
        self._file = _open(folder) if folder is not None else None
        if self._file is not None:
            weakref.finalize(self, self._file.close)
        self._free_disk = 0 if self._file is None else disk_mb * BYTES_PER_MB
        self._locations: dict[Hashable, dict[str, _Location]] = {}
        self._end = 0
        self._lock = threading.Lock()

    @property
    def free_bytes(self) -> int:
        """Free space in memory and file, bytes."""
        return self._free_memory + self._free_disk

    def reserve(self, size: int) -> Self:
        """Moves up to `size` bytes of the free space to a new cache."""
        with self._lock:
            memory = min(size, self._free_memory)
            disk = min(size - memory, self._free_disk)
            self._free_memory -= memory
            self._free_disk -= disk
        part = type(self)(0, self._folder if disk else None)
        part._free_memory, part._free_disk = memory, disk
        return part

    def get(self, key: Hashable) -> Arrays | None:
        """Returns the arrays, or None if they are not stored."""
        arrays = self._memory.get(key)
        if arrays is not None or self._file is None or key not in self._locations:
            return arrays
        arrays = {}
        for name, (offset, shape, dtype) in self._locations[key].items():
            data = os.pread(self._file.fileno(), math.prod(shape) * dtype.itemsize, offset)
            arrays[name] = np.frombuffer(data, dtype).reshape(shape)
        return arrays

    def put(self, key: Hashable, arrays: Arrays) -> None:
        """Stores the arrays if there is space; they must not be modified afterwards."""
        size = sum(array.nbytes for array in arrays.values())
        with self._lock:
            if key in self._memory or key in self._locations:
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
                f"warning: cannot write to data.cache_folder ({error.strerror}). The remaining data is read "
                "or computed again each time, which is slower.",
                file=sys.stderr,
            )
            return
        locations = {}
        for name, array in arrays.items():
            locations[name] = _Location(self._end, array.shape, array.dtype)
            self._end += array.nbytes
        self._locations[key] = locations


def _open(folder: Path) -> BinaryIO:
    try:
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    except OSError as error:
        raise ConfigError(
            f"data.cache_folder = '{folder}': cannot create a file ({error.strerror}). Expected an existing, "
            "writable folder."
        ) from error
