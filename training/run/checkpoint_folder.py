"""The folder of a run's checkpoints: which are there, and writing a further one."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from segdec.runtime.files import atomic_folder, remove_temporary_files

_NAME = re.compile(r"ckpt-(\d+)-(\d+)")


class CheckpointFolder:
    """The checkpoints of a run: folders `ckpt-<stage index>-<step>`, each written atomically.

    The checkpoint with the highest stage and step is the newest, whenever it was written: the state at a step
    depends on the configuration alone. (Asynchronous training can continue from any checkpoint.) `keep` of
    them are kept.
    """

    def __init__(self, path: Path, keep: int) -> None:
        self.path = path
        self._keep = keep
        self.damaged: set[Path] = set()
        """Ignored checkpoints; the next write removes them."""

    def newest_first(self) -> list[Path]:
        """Returns all checkpoints, the newest first."""
        checkpoints = (path for path in self.path.glob("ckpt-*") if _NAME.fullmatch(path.name))
        return sorted(checkpoints, key=_position, reverse=True)

    def write(self, stage: int, step: int, fill: Callable[[Path], None]) -> Path:
        """Adds the checkpoint that `fill` writes into an empty folder, removes the oldest ones; returns it.
        Raises an `OSError` if the disk is full or not writable; earlier checkpoints are unchanged.
        """
        checkpoint = self.path / f"ckpt-{stage}-{step}"
        remove_temporary_files(self.path)
        with atomic_folder(checkpoint, overwrite=True) as staged:
            fill(staged)
        self.damaged.discard(checkpoint)
        whole = [path for path in self.newest_first() if path not in self.damaged]
        for path in {*self.damaged, *whole[self._keep :]}:
            shutil.rmtree(path, ignore_errors=True)
        self.damaged.clear()
        return checkpoint


def _position(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in path.name.split("-")[1:])
