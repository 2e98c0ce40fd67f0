"""One tf.data pipeline outside the replicas: the global batches of a stage, in an order set by the seed."""

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


class InputPipeline:
    """Batches of prepared, augmented examples.

    Args:
        source: The training examples.
        shape: Their common image shape (h, w, C).
        augmentation: Random changes.
        batch_size: Global batch size.
        seed: Decides order and augmentation.
    """

    def __init__(
        self,
        source: ExampleSource,
        shape: tuple[int, ...],
        augmentation: AugmentationConfig,
        batch_size: int,
        seed: int,
    ) -> None:
        self._source = source
        self._shape = shape
        self._augmentation = augmentation
        self._batch_size = batch_size
        self._seed = seed
        self.error: SegdecError | None = None

    def batches(self, stage_index: int, first_step: int, steps: int) -> tf.data.Dataset:
        """Batches `first_step` to `steps` of a stage.

        What a batch holds depends on seed, stage and step alone, so a resumed run sees the same ones.

        Returns:
            Dictionaries `image` [B, h, w, C] float32 0…255, `target` [B, h/8, w/8, 1] float32 and
            `label` [B] int32.
        """
        labels = [record.label for record in self._source.records]
        seed = [self._seed, stage_index]
        order = balanced_order(labels, steps * self._batch_size, seed)
        positions = np.arange(first_step * self._batch_size, len(order))
        dataset = tf.data.Dataset.from_tensor_slices((positions, order[positions]))
        dataset = dataset.map(
            lambda position, index: self._example(position, index, seed, labels),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return dataset.batch(self._batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

    def _example(
        self, position: tf.Tensor, index: tf.Tensor, seed: list[int], labels: list[int]
    ) -> dict[str, tf.Tensor]:
        height, width, channels = self._shape
        image, target = tf.numpy_function(self._load, [index], (tf.uint8, tf.float32))
        image = tf.cast(tf.ensure_shape(image, (height, width, channels)), tf.float32)
        target = tf.ensure_shape(target, (height // STRIDE, width // STRIDE, 1))
        draw = tf.stack([tf.constant(hash_seed(seed), tf.int64), position])
        image, target = augment(image, target, draw, self._augmentation)
        return {"image": image, "target": target, "label": tf.gather(tf.constant(labels, tf.int32), index)}

    def _load(self, index: Any) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        try:
            example = self._source[int(index)]
        except SegdecError as error:
            self.error = error  # TensorFlow turns the exception into text; the trainer raises this one
            raise
        return example.image, example.target


def hash_seed(numbers: list[int]) -> int:
    """One well-mixed non-negative number out of several."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint32)[0])
