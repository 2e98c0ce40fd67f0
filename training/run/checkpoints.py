"""Checkpoints of a run: network, optimisers, averages and position, saved so that the run can resume."""

import io
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import tensorflow as tf

from segdec.errors import RunError
from segdec.network.network import SegDecNet
from training.config import ExperimentConfig
from training.optimization.pretrained import mutable_variables
from training.optimization.train_state import TrainState
from training.run.checkpoint_folder import CheckpointFolder
from training.run.disk_errors import explained_disk_errors
from training.schedule_control import ScheduleState

_SCHEDULE = "schedule.json"
"""File of a checkpoint with the progress of a run that has a time limit."""

_UNREADABLE = (tf.errors.OpError, OSError, ValueError, AssertionError, LookupError)
"""What TensorFlow raises for files that are missing, truncated, changed or of another network."""


class RunState(tf.Module):
    """Everything that a checkpoint contains, with the best weights so far, without frozen encoder weights.

    Args:
        folder: Folder of the checkpoints.
        train_state: What the steps change.
        validated: The network that is validated, with plain variables; `save_best` stores its weights.
        config: How often a checkpoint is due, and how many to keep.
        writes: Whether this process reads and writes checkpoints; the others get them from it.
        broadcast: Returns the message of the process that writes in all of them; None for a single process.
        clock: Monotonic time, s.

    Attributes:
        stage: Index of the stage in `STAGES`, of which `step` steps are completed.
        schedule: Of the restored checkpoint, for the control of the schedules; None if it has none.
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
        broadcast: Callable[[bytes], bytes] | None = None,
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
        self.schedule: ScheduleState | None = None
        self._checkpoints = CheckpointFolder(folder, config.keep_checkpoints)
        self._writes, self._broadcast = writes, broadcast
        self._every_steps, self._every_seconds = config.checkpoint_every, config.checkpoint_minutes * 60.0
        self._clock, self._saved_at = clock, clock()

    @property
    def steps_taken(self) -> int:
        """Completed steps of the current stage."""
        return int(self.step.read_value())

    def restore(self) -> bool:
        """Restores the newest intact checkpoint in all processes; returns whether there was one.

        Damaged ones are reported. Raises a `RunError` if there are checkpoints, but none is readable and fits
        this network.
        """
        return self.share(self._restore_newest() if self._writes else None)

    def share(self, checkpoint: Path | None) -> bool:
        """Restores a checkpoint of the process that writes in the others; returns whether there is one."""
        if self._broadcast is None:
            return checkpoint is not None
        message = self._broadcast(b"" if checkpoint is None else _pack(checkpoint))
        if message and not self._writes:
            with tempfile.TemporaryDirectory() as place:
                _unpack(message, Path(place))
                self._read(Path(place))
        return bool(message)

    def _restore_newest(self) -> Path | None:
        damaged: dict[Path, str] = {}
        for checkpoint in self._checkpoints.newest_first():
            try:
                self._read(checkpoint)
            except _UNREADABLE as error:
                self._checkpoints.damaged.add(checkpoint)
                lines = str(error).splitlines() or [type(error).__name__]
                damaged[checkpoint] = lines[0].rstrip(". ") + "."
                continue
            for path, reason in damaged.items():
                print(
                    f"warning: The checkpoint '{path}' cannot be read: {reason} "
                    f"Resuming from the previous one, '{checkpoint}'; the result stays the same.",
                    file=sys.stderr,
                )
            return checkpoint
        if damaged:
            newest, reason = next(iter(damaged.items()))
            raise RunError(
                f"Cannot restore any checkpoint in '{self._checkpoints.path}'; the newest, '{newest.name}': "
                f"{reason} Expected an intact checkpoint of the same network. Restore a backup, or "
                "start over with --fresh."
            )
        return None

    def _read(self, checkpoint: Path) -> None:
        self.schedule = _read_schedule(checkpoint)
        self._everything.read(_prefix(checkpoint)).assert_existing_objects_matched()

    def is_due(self, step: int) -> bool:
        """Returns whether a checkpoint is due after this step of the stage."""
        waited = self._clock() - self._saved_at
        return step % self._every_steps == 0 or (0.0 < self._every_seconds <= waited)

    def save(self, step: int, schedule: ScheduleState | None = None) -> Path | None:
        """Writes a checkpoint after `step` steps of the stage, then removes the oldest ones; returns it.

        Processes that do not write only set their step and return None. Raises a `RunError` if the disk is
        full or not writable; earlier checkpoints are unchanged.
        """
        self.step.assign(step)
        self._saved_at = self._clock()
        if not self._writes:
            return None

        def fill(path: Path) -> None:
            self._everything.write(_prefix(path))
            if schedule is not None:
                (path / _SCHEDULE).write_text(schedule.model_dump_json() + "\n", encoding="utf-8")

        with explained_disk_errors(self._checkpoints.path):
            return self._checkpoints.write(int(self.stage), step, fill)

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


def _read_schedule(checkpoint: Path) -> ScheduleState | None:
    path = checkpoint / _SCHEDULE
    return ScheduleState.model_validate_json(path.read_bytes()) if path.exists() else None


def _prefix(checkpoint: Path) -> str:
    return str(checkpoint / "state")


def _pack(folder: Path) -> bytes:
    """The files of a folder as a tar archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name)
    return packed.getvalue()


def _unpack(packed: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
