"""The input pipeline: global batches of a stage, in an order determined by the seed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.errors import ConfigError, SegdecError
from segdec.runtime.cli import progress_bar
from training.config import AugmentationConfig, ExperimentConfig
from training.data.array_cache import Arrays
from training.data.augmentation import augment, draw_parameters, drawn_rotation, flipped_axes
from training.data.example_source import Example, ExampleSource
from training.data.feature_cache import FEATURE_DTYPE, FeatureCache
from training.data.reading_pool import ReadingPool
from training.data.sampling import FEATURE_NOISE, UNCHANGED, SampleOrder, sample_order
from training.data.synthetic_source import SyntheticSource
from training.data.targets import build_targets, known_area, split_by_class
from training.stages import STAGES
from training.synthesis.feature_noise import add_noise, draw_noise_mask

Batch = dict[str, tf.Tensor]
"""Augmented examples with their targets, stacked.

`image` [B, h, w, C] float32 0…255, or the features of a frozen encoder by their names, [B, ·, ·, ·] float16;
`target` [B, h/s, w/s, M] and `weight` [B, h/s, w/s, 1] float32, s = `mask_stride`, M = `mask_channels`;
`label` [B] int32, possibly `ANY_DEFECT`; `has_boxes` [B] int32, 1 if the mask holds boxes, otherwise 0; with
several heads `head_weight` [B, heads] float32, 0 for the head that is trained without the example's fold.
"""


@dataclass(frozen=True)
class InputShard:
    """The rows of each global batch that process `index` reads; each of its replicas takes an equal part."""

    index: int = 0
    processes: int = 1
    replicas: int = 1


WHOLE_BATCH = InputShard()
NO_AUGMENTATION = AugmentationConfig(flip_horizontal=False, flip_vertical=False)
_DEFECT, _NOISE = 1, 2
"""Streams of random numbers besides that of augmentation: the defect, and its feature noise."""


@dataclass(frozen=True)
class _Row:
    """A row of the batches of a stage: its position, its example, and the source of its defect."""

    stage_index: int
    position: int
    index: int
    donor: int


class InputPipeline:
    """Batches of prepared, augmented examples of `shape` (h, w, C), or of features of a frozen encoder.

    Raises:
        ConfigError: If a stage trains the mask only and no mask is known.

    Attributes:
        error: The error of a batch that could not be read.
    """

    def __init__(
        self,
        source: ExampleSource,
        shape: tuple[int, ...],
        config: ExperimentConfig,
        pool: ReadingPool,
        features: FeatureCache | None = None,
    ) -> None:
        self._source = source
        self._examples = SyntheticSource(source, config.network.num_classes, config.target)
        self._shape = shape
        self._config = config
        self._batch_size = config.batch_size
        self._pool = pool
        self._features = features
        self.error: SegdecError | OSError | None = None
        self._check_masks()

    def encode(self) -> Iterator[None]:
        """Stores the features of all examples one by one, without rotated copies; of none if the cache has no
        space for all.
        """
        features = self._features
        if features is None or features.describe_shortage():
            return

        def store(index: int) -> None:
            self._unaugmented_arrays(index, 0)

        examples = range(len(self._source))
        stored = self._pool.map(store, examples, 2 * self._pool.threads)
        with closing(stored):
            yield from progress_bar(stored, total=len(examples), desc="encoding", unit="image", leave=False)

    def load_unaugmented(self, index: int) -> Arrays:
        """Returns an example as in a batch, but without augmentation."""
        row = _Row(0, 0, index, UNCHANGED)
        return self._load(row, lambda row: self._unaugmented_arrays(row.index, 0))

    def batches(
        self, stage_index: int, first_step: int, steps: int, shard: InputShard = WHOLE_BATCH
    ) -> tf.data.Dataset:
        """Returns the batches `first_step` to `steps` of a stage, one element per replica of `shard`.

        A global batch depends on seed, stage and step only: resumed runs and runs on other devices or
        machines get the same one.
        """
        rows = self._batch_size // shard.processes
        positions = np.arange(first_step * self._batch_size, steps * self._batch_size)
        positions = positions.reshape(-1, shard.processes, rows)[:, shard.index].ravel()
        order = self._order(stage_index, steps)
        size = rows // shard.replicas

        def read() -> Iterator[Arrays]:
            return self._read(_rows(order, stage_index, positions.tolist()), size, ahead=2 * rows)

        batches = tf.data.Dataset.from_generator(read, output_signature=self._signature(size))
        return batches.prefetch(shard.replicas).with_options(_without_autotuning())

    def distribute(
        self, strategy: tf.distribute.Strategy, stage_index: int, first_step: int, steps: int
    ) -> Iterator[Batch]:
        """Returns the same batches split over the replicas of `strategy`; each process reads its rows."""
        devices = strategy.extended.worker_devices
        processes = strategy.num_replicas_in_sync // len(devices)
        index = strategy.cluster_resolver.task_id if processes > 1 else 0
        shard = InputShard(index, processes, len(devices))
        elements = iter(self.batches(stage_index, first_step, steps, shard))
        return _over_replicas(strategy, devices, elements)

    def global_batch(
        self, stage_index: int, step: int, max_images: int | None = None
    ) -> tuple[list[str], Arrays]:
        """Reads the first `max_images` images of step `step` (from 1) again; returns names and arrays."""
        first = (step - 1) * self._batch_size
        positions = range(first, step * self._batch_size)[:max_images]
        rows = list(_rows(self._order(stage_index, step), stage_index, positions))
        (batch,) = self._read(iter(rows), len(rows), ahead=0, load_input=self._augmented)
        return [self._examples.name(row.index, row.donor) for row in rows], batch

    def _order(self, stage_index: int, steps: int) -> SampleOrder:
        """The order of a stage; examples without a mask are omitted if it trains the mask only."""
        usable = np.arange(len(self._source))
        if not STAGES[stage_index].trains_decision:
            usable = np.flatnonzero(self._source.supervised)
        source, changes = self._source, self._config.augmentation
        order = sample_order(
            self._config.sampling,
            [source.labels[index] for index in usable.tolist()],
            [bool(changes.transplant) and source.has_drawn_mask(index) for index in usable.tolist()],
            steps * self._batch_size,
            [self._config.seed, stage_index],
            synthetic=changes.synthetic,
            transplant=changes.transplant,
            feature_noise=changes.feature_noise,
        )
        defect_sources = np.where(
            order.defect_sources < 0, order.defect_sources, usable[order.defect_sources]
        )
        return SampleOrder(usable[order.images], defect_sources)

    def _check_masks(self) -> None:
        if self._config.augmentation.synthetic:  # their masks are known
            return
        known = zip(self._source.labels, self._source.supervised, strict=True)
        if self._config.stages.segment.steps and not any(label and supervised for label, supervised in known):
            raise ConfigError(
                "All defective training photographs have a label only, so that the stage 'segment' cannot be "
                "trained. Expected some masks or boxes: add them, or set stages.segment.steps = 0, and "
                "network.gradient_gate = false so that the decision trains the segmentation network in the "
                "joint stage."
            )

    def _signature(self, size: int) -> dict[str, tf.TensorSpec]:
        height, width, channels = self._shape
        stride = self._config.network.mask_stride
        grid = size, height // stride, width // stride
        if self._features is None:
            inputs = {"image": tf.TensorSpec((size, height, width, channels), tf.float32)}
        else:
            shapes = self._features.shapes.items()
            inputs = {name: tf.TensorSpec((size, *shape), FEATURE_DTYPE) for name, shape in shapes}
        heads = self._config.network.heads
        if heads > 1:
            inputs["head_weight"] = tf.TensorSpec((size, heads), tf.float32)
        return {
            **inputs,
            "target": tf.TensorSpec((*grid, self._config.network.mask_channels), tf.float32),
            "weight": tf.TensorSpec((*grid, 1), tf.float32),
            "label": tf.TensorSpec((size,), tf.int32),
            "has_boxes": tf.TensorSpec((size,), tf.int32),
        }

    def _read(
        self, rows: Iterator[_Row], size: int, ahead: int, load_input: Callable[[_Row], Arrays] | None = None
    ) -> Iterator[Arrays]:
        """Batches of `size` rows; up to `ahead` rows are ready while the threads work on others."""
        load = partial(self._load, load_input=load_input or self._input)
        loaded = self._pool.map(load, rows, ahead + self._pool.threads)
        try:
            while batch := list(islice(loaded, size)):
                yield {name: np.stack([row[name] for row in batch]) for name in batch[0]}
        except (SegdecError, OSError) as error:
            self.error = error  # TensorFlow converts the exception to text; the trainer raises this one
            raise
        finally:
            loaded.close()

    def _load(self, row: _Row, load_input: Callable[[_Row], Arrays]) -> Arrays:
        """One row of a batch: image or features, target, weight and label."""
        config, shape = self._config, self._shape
        arrays = dict(load_input(row))
        if config.network.heads > 1:
            arrays["head_weight"] = self._head_weight(row)
        mask, area, classes, ignored = (
            arrays.pop(name, None) for name in ("mask", "area", "classes", "ignored")
        )
        area = known_area(area, ignored)
        share, weight = build_targets(
            mask,
            (shape[0], shape[1]),
            config.target,
            config.network.mask_stride,
            supervised=self._examples.is_supervised(row.index, row.donor),
            area=area,
        )
        label = self._examples.label(row.index, row.donor, masked=mask is not None)
        if config.network.mask_channels > 1:
            settings = config.target, config.network.mask_stride, config.network.mask_channels
            share = split_by_class(share, mask, label, *settings, classes=classes, area=area)
        boxes = self._examples.has_boxes(row.index, row.donor)
        numbers = {"label": np.asarray(label, np.int32), "has_boxes": np.asarray(boxes, np.int32)}
        return {**arrays, "target": share, "weight": weight, **numbers}

    def _head_weight(self, row: _Row) -> NDArray[np.float32]:
        """1 for each head that may see the example and the source of its defect, otherwise 0."""
        folds = {self._source.fold(index) for index in (row.index, row.donor) if index >= 0}
        heads = range(1, self._config.network.heads + 1)
        return np.array([fold not in folds for fold in heads], np.float32)

    def _input(self, row: _Row) -> Arrays:
        """Image or features of a row, with the maps of `_augmented`."""
        if self._features is None:
            return self._augmented(row)
        if row.donor not in (UNCHANGED, FEATURE_NOISE):  # used once, hence not cached
            return self._features.compute(self._augmented(row))
        drawn, changes = draw_parameters(self._random(row)), self._config.augmentation
        turns = drawn_rotation(drawn, changes, self._shape)
        stored = self._unaugmented_arrays(row.index, turns)
        axes = flipped_axes(drawn, changes)
        arrays = {name: np.flip(array, axes) for name, array in stored.items()}
        if row.donor == UNCHANGED or (mask := self._noise_mask(row, arrays)) is None:
            return arrays
        features = {name: arrays[name] for name in self._features.shapes}
        return {**arrays, **add_noise(features, mask, self._random(row, _NOISE)), "mask": mask}

    def _unaugmented_arrays(self, index: int, turns: int) -> Arrays:
        """Image or features of an example, rotated by right angles, with the maps of `_augmented`."""
        if self._features is None:
            return self._rotated_example(index, turns)
        return self._features.get((index, turns), lambda: self._rotated_example(index, turns))

    def _rotated_example(self, index: int, turns: int) -> Arrays:
        """The `image` of an example, rotated by right angles, with the maps of `_augmented`."""
        arrays = _augment(self._source[index], np.random.default_rng(0), NO_AUGMENTATION)
        return {name: np.rot90(array, turns) for name, array in arrays.items()}

    def _augmented(self, row: _Row) -> Arrays:
        """The augmented `image`, with `mask`, `area`, `classes` and `ignored` if it has them."""
        example = self._examples.get(row.index, row.donor, self._random(row, _DEFECT))
        arrays = _augment(example, self._random(row), self._config.augmentation)
        mask = self._noise_mask(row, arrays) if row.donor == FEATURE_NOISE else None
        return arrays if mask is None else {**arrays, "mask": mask}

    def _noise_mask(self, row: _Row, arrays: Arrays) -> NDArray[np.uint8] | None:
        size = self._shape[0], self._shape[1]
        area = known_area(arrays.get("area"), arrays.get("ignored"))
        return draw_noise_mask(self._random(row, _DEFECT), size, area)

    def _random(self, row: _Row, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self._config.seed, row.stage_index, row.position, *stream])


def _augment(example: Example, random: np.random.Generator, config: AugmentationConfig) -> dict[str, Any]:
    maps = example.area, example.classes, example.ignored
    augmented = augment(example.image, example.mask, random, config, *maps)
    return {name: array for name, array in augmented._asdict().items() if array is not None}


def _rows(order: SampleOrder, stage_index: int, positions: Sequence[int]) -> Iterator[_Row]:
    for position in positions:
        yield _Row(stage_index, position, int(order.images[position]), int(order.defect_sources[position]))


def _without_autotuning() -> tf.data.Options:
    """Disables autotuning: deleting an iterator often waits up to a minute for its thread.

    The wake-up signal is sent before the thread waits for it (`Model::OptimizeLoop` of TensorFlow 2.21).
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return options


def _over_replicas(
    strategy: tf.distribute.Strategy, devices: Sequence[str], elements: Iterator[Batch]
) -> Iterator[Batch]:
    """Groups one element per replica, each on its device.

    Iterators of `distribute_datasets_from_function` would autotune regardless of the options.
    """
    while True:
        parts = []
        for device in devices:
            part = next(elements, None)
            if part is None:
                return
            with tf.device(device):
                parts.append(tf.nest.map_structure(tf.identity, part))
        own = iter(parts)
        yield strategy.experimental_distribute_values_from_function(lambda _: next(own))  # noqa: B023
