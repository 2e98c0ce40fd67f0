"""What a run saves so that it can go on, network, optimisers, averages and place, and where that lies."""

import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import tensorflow as tf

from segdec.errors import RunError
from segdec.network.network import SegDecNet
from segdec.runtime.files import atomic_folder, remove_temporary_files
from training.config import ExperimentConfig
from training.optimization.pretrained import mutable_variables
from training.optimization.train_state import TrainState
from training.run.disk_errors import explained_disk_errors

_NAME = re.compile(r"ckpt-(\d+)-(\d+)")

_UNREADABLE = (tf.errors.OpError, OSError, ValueError, AssertionError, LookupError)
"""What TensorFlow raises for files that are missing, cut off, changed or of another network."""


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
        """Returns all checkpoints, the furthest one first."""
        found = {_place(path): path for path in self.path.glob("ckpt-*") if _NAME.fullmatch(path.name)}
        return [found[place] for place in sorted(found, reverse=True)]

    def mark_damaged(self, checkpoint: Path) -> None:
        """Counts a checkpoint no more; the next write removes it."""
        self._damaged.add(checkpoint)

    def write(self, stage: int, step: int, fill: Callable[[Path], None]) -> None:
        """Adds the checkpoint that `fill` writes into an empty folder, then removes those no longer kept.

        Raises:
            OSError: If the place is full or not writable; earlier checkpoints are as they were.
        """
        checkpoint = self.path / f"ckpt-{stage}-{step}"
        remove_temporary_files(self.path)
        with atomic_folder(checkpoint, overwrite=True) as staged:
            fill(staged)
        self._damaged.discard(checkpoint)
        whole = [path for path in self.newest_first() if path not in self._damaged]
        for path in {*self._damaged, *whole[self._keep :]}:
            shutil.rmtree(path, ignore_errors=True)
        self._damaged.clear()


class RunState(tf.Module):
    """Everything that a checkpoint holds; saving it does not change it.

    The best weights are part of each checkpoint, so they always are those that belong to its place. What of
    an encoder is held still is no part of it.

    Args:
        folder: Folder of the checkpoints.
        train_state: What the steps change.
        validated: A network that begins alike, with plain variables; `save_best` keeps its weights.
        config: How often a checkpoint is due, and how many stay.
        writes: Whether this process writes the checkpoints; the others only read.
        clock: Seconds that pass.

    Attributes:
        stage: Index of the stage in `STAGES`.
        step: Steps of that stage already taken; the one of `train_state`.
        best: Validation key of the best weights of the stage so far, higher is better.
        best_weights: The best weights, in the order of `mutable_variables`.
    """

    def __init__(
        self,
        folder: Path,
        train_state: TrainState,
        validated: SegDecNet,
        config: ExperimentConfig,
        *,
        writes: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.stage = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.step = train_state.step
        self.best = tf.Variable([float("-inf")] * 2, dtype=tf.float64, trainable=False)
        self._weights = [weight.value for weight in mutable_variables(train_state.network)]
        self._validated = [weight.value for weight in mutable_variables(validated)]
        with tf.device("CPU:0"):  # they are only kept, never computed with
            self.best_weights = [tf.Variable(weight, trainable=False) for weight in self._validated]
        scale = {} if train_state.loss_scale is None else {"loss_scale": train_state.loss_scale}
        self._everything = tf.train.Checkpoint(
            weights=self._weights,
            optimizers={**train_state.optimizers, **scale},
            average=train_state.ema,
            stage=self.stage,
            step=self.step,
            best=self.best,
            best_weights=self.best_weights,
        )
        self._checkpoints, self._writes = CheckpointFolder(folder, config.keep_checkpoints), writes
        self._every_steps, self._every_seconds = config.checkpoint_every, config.checkpoint_minutes * 60.0
        self._clock, self._saved_at = clock, clock()

    @property
    def steps_taken(self) -> int:
        """Steps of the present stage already taken."""
        return int(self.step.read_value())

    def restore(self) -> bool:
        """Restores the newest checkpoint that is whole; returns whether there was one.

        A damaged one is named on stderr.

        Raises:
            RunError: If there are checkpoints, but none can be read or fits this network.
        """
        damaged: dict[Path, str] = {}
        for checkpoint in self._checkpoints.newest_first():
            try:
                self._everything.read(_prefix(checkpoint)).assert_existing_objects_matched()
            except _UNREADABLE as error:
                self._checkpoints.mark_damaged(checkpoint)
                damaged[checkpoint] = _reason(error)
            else:
                self._warn(damaged, checkpoint)
                return True
        if damaged:
            newest, reason = next(iter(damaged.items()))
            raise RunError(
                f"Cannot restore any checkpoint in '{self._checkpoints.path}'; the newest, '{newest.name}': "
                f"{reason} Expected a whole one of the same network. Put one back from a copy, or start "
                "over with --fresh."
            )
        return False

    def is_due(self, step: int) -> bool:
        """Returns whether to save after this step of the stage."""
        waited = self._clock() - self._saved_at
        return step % self._every_steps == 0 or (0.0 < self._every_seconds <= waited)

    def save(self, step: int) -> None:
        """Writes a checkpoint of everything, after `step` steps of the stage; the oldest are then removed.

        Raises:
            RunError: If the disk is full or not writable; earlier checkpoints are as they were.
        """
        self.step.assign(step)
        self._saved_at = self._clock()
        if self._writes:
            with explained_disk_errors(self._checkpoints.path):
                self._checkpoints.write(
                    int(self.stage), step, lambda path: self._everything.write(_prefix(path))
                )

    def is_better(self, key: tuple[float, float]) -> bool:
        """Returns whether `key` is at least that of the best: of equals, the longer trained are taken."""
        return key >= tuple(self.best.numpy().tolist())

    def save_best(self, key: tuple[float, float]) -> None:
        """Keeps the weights of the validated network as the best, with their validation key."""
        for kept, weight in zip(self.best_weights, self._validated, strict=True):
            kept.assign(weight)
        self.best.assign(key)

    def restore_best(self) -> None:
        """Puts the best weights into the network in training."""
        for weight, kept in zip(self._weights, self.best_weights, strict=True):
            weight.assign(kept)

    def copy_best_to_validated(self) -> None:
        """Puts the best weights into the validated network."""
        for weight, kept in zip(self._validated, self.best_weights, strict=True):
            weight.assign(kept)

    def reset_best(self) -> None:
        """Starts a new competition, for a stage that is judged by another measure."""
        self.best.assign([float("-inf")] * 2)

    def _warn(self, damaged: Mapping[Path, str], used: Path) -> None:
        if self._writes:
            for checkpoint, reason in damaged.items():
                print(
                    f"warning: The checkpoint '{checkpoint}' cannot be read: {reason} "
                    f"Going on from the one before, '{used}'; the result stays the same.",
                    file=sys.stderr,
                )


def _place(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in path.name.split("-")[1:])


def _prefix(checkpoint: Path) -> str:
    return str(checkpoint / "state")


def _reason(error: BaseException) -> str:
    """The first line of what TensorFlow says, as a sentence."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].rstrip(". ") + "."
