"""Where checkpoints lie: which there are, how one is added whole, and which go."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from segdec.files import new_folder, remove_leftovers

_NAME = re.compile(r"ckpt-(\d+)-(\d+)")


class CheckpointFolder:
    """The checkpoints of a run: folders `ckpt-<stage index>-<step>`, each there whole or not at all.

    The checkpoint furthest on is the newest, whatever was written when: a run's state at a step depends on
    its configuration alone, but for asynchronous training, which any may continue. So no list beside the
    folders can disagree with them.

    Args:
        path: The folder; it is made at the first write.
        keep: Number of checkpoints that stay.
    """

    def __init__(self, path: Path, keep: int) -> None:
        self.path = path
        self._keep = keep
        self._damaged: set[Path] = set()

    def newest_first(self) -> list[Path]:
        """All checkpoints, the furthest one first."""
        found = {_place(path): path for path in self.path.glob("ckpt-*") if _NAME.fullmatch(path.name)}
        return [found[place] for place in sorted(found, reverse=True)]

    def mark_damaged(self, checkpoint: Path) -> None:
        """Counts a checkpoint no more; the next write removes it."""
        self._damaged.add(checkpoint)

    def write(self, stage: int, step: int, fill: Callable[[Path], None]) -> None:
        """Adds the checkpoint that `fill` writes into an empty folder, then removes those no longer kept.

        Raises:
            OSError: The place is full or not writable; earlier checkpoints are as they were.
        """
        checkpoint = self.path / f"ckpt-{stage}-{step}"
        remove_leftovers(self.path)
        with new_folder(checkpoint, overwrite=True) as staged:
            fill(staged)
        self._damaged.discard(checkpoint)
        whole = [path for path in self.newest_first() if path not in self._damaged]
        for path in {*self._damaged, *whole[self._keep :]}:
            shutil.rmtree(path, ignore_errors=True)
        self._damaged.clear()


def _place(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in path.name.split("-")[1:])
