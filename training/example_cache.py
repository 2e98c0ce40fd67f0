"""Keeps prepared examples: in memory first, then in a file that has no name, then not at all."""

import errno
import os
import sys
import tempfile
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ConfigError

Value = TypeVar("Value", np.uint8, np.float32)

BYTES_A_MB = 1_000_000


@dataclass(frozen=True)
class Example:
    """A prepared sample.

    Attributes:
        image: uint8 [h, w, C], as the network takes it.
        target: float32 [h/8, w/8, 1], share of each cell that is defective.
    """

    image: NDArray[np.uint8]
    target: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """Memory it takes, bytes."""
        return self.image.nbytes + self.target.nbytes


class ExampleCache:
    """Examples by index; may be used by several threads.

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
        self._memory: dict[int, Example] = {}
        self._free_memory = memory_mb * BYTES_A_MB
        self._file = _open(folder) if folder is not None else None
        if self._file is not None:
            weakref.finalize(self, self._file.close)
        self._free_disk = disk_mb * BYTES_A_MB
        self._places: dict[int, tuple[int, tuple[int, ...], tuple[int, ...]]] = {}  # offset, shapes
        self._end = 0
        self._lock = threading.Lock()

    def get(self, index: int) -> Example | None:
        """The example, or None where it was not kept."""
        kept = self._memory.get(index)
        if kept is not None or self._file is None or index not in self._places:
            return kept
        offset, image, target = self._places[index]
        return Example(
            _read_array(self._file, np.uint8, image, offset),
            _read_array(self._file, np.float32, target, offset + int(np.prod(image))),
        )

    def put(self, index: int, example: Example) -> None:
        """Keeps the example where there is room for it."""
        with self._lock:
            if index in self._memory or index in self._places:
                return
            if example.nbytes <= self._free_memory:
                self._free_memory -= example.nbytes
                self._memory[index] = example
            elif self._file is not None and example.nbytes <= self._free_disk:
                self._free_disk -= example.nbytes
                self._write(self._file, index, example)

    def _write(self, file: BinaryIO, index: int, example: Example) -> None:
        data = example.image.tobytes() + example.target.tobytes()
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
        self._places[index] = self._end, example.image.shape, example.target.shape
        self._end += len(data)


def _open(folder: Path) -> BinaryIO:
    try:
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    except OSError as error:
        raise ConfigError(
            f"data.cache_folder = '{folder}' cannot hold a file ({error.strerror}). Expected a folder that "
            "exists and may be written to."
        ) from error


def _read_array(file: BinaryIO, dtype: type[Value], shape: tuple[int, ...], offset: int) -> NDArray[Value]:
    data = os.pread(file.fileno(), int(np.prod(shape)) * np.dtype(dtype).itemsize, offset)
    return np.frombuffer(data, dtype).reshape(shape)
