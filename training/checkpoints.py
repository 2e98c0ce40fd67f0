"""What a run saves so that it can go on: the network, its optimisers, its averages and its place."""

from collections.abc import Mapping
from pathlib import Path

import keras
import tensorflow as tf

from segdec.errors import RunError
from segdec.network import SegDecNet
from training.averaging import WeightAverage


class RunState(tf.Module):
    """Everything that a checkpoint holds. TensorFlow writes one whole before it names it the latest.

    Attributes:
        stage: Index of the stage in `STAGES`.
        step: Steps of that stage already taken.
        best: Validation key of the best weights of the stage so far, higher is better.
    """

    def __init__(
        self,
        folder: Path,
        network: SegDecNet,
        optimizers: Mapping[str, keras.optimizers.Optimizer],
        average: WeightAverage,
    ) -> None:
        super().__init__()
        self.stage = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.best = tf.Variable([float("-inf")] * 2, dtype=tf.float64, trainable=False)
        everything = tf.train.Checkpoint(
            network=network,
            optimizers=dict(optimizers),
            average=average,
            stage=self.stage,
            step=self.step,
            best=self.best,
        )
        self._latest = tf.train.CheckpointManager(everything, str(folder / "latest"), max_to_keep=2)
        self._best = tf.train.CheckpointManager(
            tf.train.Checkpoint(network=network), str(folder / "best"), max_to_keep=1
        )

    def restore(self) -> bool:
        """Restores the newest checkpoint; returns whether there was one.

        Raises:
            RunError: If the checkpoint does not fit this network or cannot be read.
        """
        if self._latest.latest_checkpoint is None:
            return False
        _restore(self._latest)
        return True

    def save(self) -> None:
        """Writes a checkpoint of everything."""
        self._latest.save()

    def is_better(self, key: tuple[float, float]) -> bool:
        """Whether `key` is at least that of the best weights: of equals, the longer trained are taken."""
        return key >= tuple(self.best.numpy().tolist())

    def save_best(self, key: tuple[float, float]) -> None:
        """Keeps the network's present weights as the best, with their validation key."""
        self._best.save()
        self.best.assign(key)

    def restore_best(self) -> None:
        """Puts the best weights into the network."""
        _restore(self._best)

    def forget_best(self) -> None:
        """A stage that is judged by another measure starts a new competition."""
        self.best.assign([float("-inf")] * 2)


def _restore(manager: tf.train.CheckpointManager) -> None:
    try:
        manager.checkpoint.restore(manager.latest_checkpoint).assert_existing_objects_matched()
    except (tf.errors.OpError, ValueError, AssertionError) as error:
        raise RunError(
            f"Cannot restore the checkpoint '{manager.latest_checkpoint}': {str(error).splitlines()[0]} "
            "Expected one of the same network. Start over with --fresh."
        ) from error
