"""One tf.data pipeline outside the replicas: the global batches of a stage, in an order set by the seed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.config import STRIDE
from segdec.errors import SegdecError
from training.augmentation import augment
from training.config import AugmentationConfig
from training.sampling import balanced_order
from training.targets import ExampleSource


@dataclass(frozen=True)
class Share:
    """One process's part of every global batch.

    Attributes:
        index: Number of the process.
        processes: How many there are.
        replicas: Replicas of this process; each takes an equal part of its rows.
    """

    index: int = 0
    processes: int = 1
    replicas: int = 1


WHOLE = Share()
"""All rows, for one replica."""


class InputPipeline:
    """Batches of prepared, augmented examples.

    Args:
        source: The training examples.
        shape: Their common image shape (h, w, C).
        augmentation: Random changes.
        batch_size: Global batch size.
        seed: Decides order and augmentation.
        threads: Threads that read and augment, for each replica.

    Attributes:
        error: Why the last example could not be read, where it could not.
    """

    def __init__(
        self,
        source: ExampleSource,
        shape: tuple[int, ...],
        augmentation: AugmentationConfig,
        batch_size: int,
        seed: int,
        threads: int = 2,
    ) -> None:
        self._source = source
        self._shape = shape
        self._augmentation = augmentation
        self._batch_size = batch_size
        self._seed = seed
        self._threads = threads
        self._labels = [record.label for record in source.records]
        self.error: SegdecError | OSError | None = None

    def batches(self, stage_index: int, first_step: int, steps: int, share: Share = WHOLE) -> tf.data.Dataset:
        """Batches `first_step` to `steps` of a stage, one element a replica of `share`, replica by replica.

        What a global batch holds depends on seed, stage and step alone: a resumed run sees the same
        ones, and so does a run on other devices or machines.

        Returns:
            Dictionaries `image` [B, h, w, C] float32 0…255, `target` [B, h/8, w/8, 1] float32 and
            `label` [B] int32; B is the batch of one replica.
        """
        rows = self._batch_size // share.processes
        positions = np.arange(first_step * self._batch_size, steps * self._batch_size)
        positions = positions.reshape(-1, share.processes, rows)[:, share.index].ravel()
        order = self._order(stage_index, steps)
        dataset = tf.data.Dataset.from_tensor_slices((positions, order[positions]))
        seed = hash_seed([self._seed, stage_index])
        dataset = dataset.map(
            lambda position, index: self._example(position, index, seed),
            num_parallel_calls=self._threads * share.replicas,
            deterministic=True,
        )
        batches = dataset.batch(rows // share.replicas, drop_remainder=True)
        return batches.prefetch(2 * share.replicas)

    def distribute(
        self, strategy: tf.distribute.Strategy, stage_index: int, first_step: int, steps: int
    ) -> tf.distribute.DistributedDataset:
        """The same batches, split over the replicas of `strategy`; each process reads its own rows."""

        def share(context: tf.distribute.InputContext) -> tf.data.Dataset:
            processes = context.num_input_pipelines
            replicas = context.num_replicas_in_sync // processes
            part = Share(context.input_pipeline_id, processes, replicas)
            return self.batches(stage_index, first_step, steps, part)

        return strategy.distribute_datasets_from_function(share)

    def global_batch(self, stage_index: int, step: int) -> tuple[list[str], dict[str, NDArray[Any]]]:
        """Once more what step number `step` (from 1) saw: names of the images, and their arrays."""
        order = self._order(stage_index, step)[-self._batch_size :]
        names = [self._source.records[index].name for index in order]
        return names, next(self.batches(stage_index, step - 1, step).as_numpy_iterator())

    def _order(self, stage_index: int, steps: int) -> NDArray[np.int64]:
        return balanced_order(self._labels, steps * self._batch_size, [self._seed, stage_index])

    def _example(self, position: tf.Tensor, index: tf.Tensor, seed: int) -> dict[str, tf.Tensor]:
        height, width, channels = self._shape
        image, target = tf.numpy_function(self._load, [index], (tf.uint8, tf.float32))
        image = tf.cast(tf.ensure_shape(image, (height, width, channels)), tf.float32)
        target = tf.ensure_shape(target, (height // STRIDE, width // STRIDE, 1))
        draw = tf.stack([tf.constant(seed, tf.int64), position])
        image, target = augment(image, target, draw, self._augmentation)
        label = tf.gather(tf.constant(self._labels, tf.int32), index)
        return {"image": image, "target": target, "label": label}

    def _load(self, index: Any) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        try:
            example = self._source[int(index)]
        except (SegdecError, OSError) as error:
            self.error = error  # TensorFlow turns the exception into text; the trainer raises this one
            raise
        return example.image, example.target


def hash_seed(numbers: list[int]) -> int:
    """One well-mixed non-negative number out of several."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint32)[0])
