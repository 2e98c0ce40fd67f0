"""Checkpoints of a run: network, optimisers, averages and position, saved so that the run can resume."""

import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
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
"""What TensorFlow raises for files that are missing, truncated, changed or of another network."""


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
        found = {_position(path): path for path in self.path.glob("ckpt-*") if _NAME.fullmatch(path.name)}
        return [found[position] for position in sorted(found, reverse=True)]

    def write(self, stage: int, step: int, fill: Callable[[Path], None]) -> None:
        """Adds the checkpoint that `fill` writes into an empty folder, then removes the oldest ones.

        Raises:
            OSError: If the disk is full or not writable; earlier checkpoints are unchanged.
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


class RunState(tf.Module):
    """Everything that a checkpoint contains, with the best weights so far, without frozen encoder weights.

    Args:
        folder: Folder of the checkpoints.
        train_state: What the steps change.
        validated: The network that is validated, with plain variables; `save_best` stores its weights.
        config: How often a checkpoint is due, and how many to keep.
        writes: Whether this process writes checkpoints; the others only read them.
        clock: Monotonic time, s.

    Attributes:
        stage: Index of the stage in `STAGES`.
        step: Completed steps of that stage.
        best: Validation key of the best weights of the stage so far; higher is better.
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
        with tf.device("CPU:0"):  # stored only, never used in computations
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
        """Completed steps of the current stage."""
        return int(self.step.read_value())

    def restore(self) -> bool:
        """Restores the newest intact checkpoint; returns whether there was one. Damaged ones are reported.

        Raises:
            RunError: If there are checkpoints, but none is readable and fits this network.
        """
        damaged: dict[Path, str] = {}
        for checkpoint in self._checkpoints.newest_first():
            try:
                self._everything.read(_prefix(checkpoint)).assert_existing_objects_matched()
            except _UNREADABLE as error:
                self._checkpoints.damaged.add(checkpoint)
                lines = str(error).splitlines() or [type(error).__name__]
                damaged[checkpoint] = lines[0].rstrip(". ") + "."
                continue
            for path, reason in damaged.items() if self._writes else ():
                print(
                    f"warning: The checkpoint '{path}' cannot be read: {reason} "
                    f"Resuming from the previous one, '{checkpoint}'; the result stays the same.",
                    file=sys.stderr,
                )
            return True
        if damaged:
            newest, reason = next(iter(damaged.items()))
            raise RunError(
                f"Cannot restore any checkpoint in '{self._checkpoints.path}'; the newest, '{newest.name}': "
                f"{reason} Expected an intact checkpoint of the same network. Restore a backup, or "
                "start over with --fresh."
            )
        return False

    def is_due(self, step: int) -> bool:
        """Returns whether a checkpoint is due after this step of the stage."""
        waited = self._clock() - self._saved_at
        return step % self._every_steps == 0 or (0.0 < self._every_seconds <= waited)

    def save(self, step: int) -> None:
        """Writes a checkpoint after `step` steps of the stage, then removes the oldest ones.

        Raises:
            RunError: If the disk is full or not writable; earlier checkpoints are unchanged.
        """
        self.step.assign(step)
        self._saved_at = self._clock()
        if self._writes:
            stage, everything = int(self.stage), self._everything
            with explained_disk_errors(self._checkpoints.path):
                self._checkpoints.write(stage, step, lambda path: everything.write(_prefix(path)))

    def is_better(self, key: tuple[float, float]) -> bool:
        """Returns whether `key` is at least the best one: among equals, the weights trained longer win."""
        return key >= tuple(self.best.numpy().tolist())

    def save_best(self, key: tuple[float, float]) -> None:
        """Stores the weights of the validated network as the best, with their validation key."""
        _copy(self._validated, self.best_weights)
        self.best.assign(key)

    def restore_best(self) -> None:
        """Copies the best weights to the network in training."""
        _copy(self.best_weights, self._weights)

    def copy_best_to_validated(self) -> None:
        """Copies the best weights to the validated network."""
        _copy(self.best_weights, self._validated)

    def reset_best(self) -> None:
        """Forgets the best key, before a stage that is validated by another metric."""
        self.best.assign([float("-inf")] * 2)


def _copy(source: Sequence[tf.Variable], target: Sequence[tf.Variable]) -> None:
    for old, new in zip(target, source, strict=True):
        old.assign(new)


def _position(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in path.name.split("-")[1:])


def _prefix(checkpoint: Path) -> str:
    return str(checkpoint / "state")
