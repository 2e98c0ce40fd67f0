"""One tf.data pipeline outside the replicas: the global batches of a stage, in an order set by the seed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.errors import ConfigError, SegdecError
from training.config import ExperimentConfig
from training.data.array_cache import Arrays
from training.data.augmentation import augment, draw_parameters, flipped_axes
from training.data.example_source import ExampleSource
from training.data.feature_cache import FEATURE_DTYPE, FeatureCache
from training.data.reading_pool import ReadingPool
from training.data.sampling import FEATURE_NOISE, UNCHANGED, SampleOrder, sample_order
from training.data.synthetic_source import SyntheticSource
from training.data.targets import build_targets, split_by_class
from training.stages import STAGES
from training.synthesis.feature_noise import add_noise, draw_noise_mask

Batch = dict[str, tf.Tensor]
"""Augmented examples with their targets, stacked.

`image` [B, h, w, C] float32 0…255, or in its place the features of a frozen encoder, by their names there,
[B, ·, ·, ·] float16; `target` [B, h/s, w/s, M] and `weight` [B, h/s, w/s, 1] float32, s = the network's
`mask_stride` and M its `mask_channels`, and `label` [B] int32, `ANY_DEFECT` among them.
"""


@dataclass(frozen=True)
class InputShard:
    """The rows of every global batch that one process reads.

    Attributes:
        index: Number of the process.
        processes: How many there are.
        replicas: Replicas of this process; each takes an equal part of its rows.
    """

    index: int = 0
    processes: int = 1
    replicas: int = 1


WHOLE_BATCH = InputShard()
"""All rows, for one replica."""

_DEFECT, _NOISE = 1, 2
"""Purpose of a random number: a defect, or its noise; without one, augmentation."""


@dataclass(frozen=True)
class _Place:
    """An example, where its defect comes from, and the row among all of a stage for which it is augmented."""

    stage_index: int
    position: int
    index: int
    donor: int


class InputPipeline:
    """Batches of prepared, augmented examples.

    Args:
        source: The training examples.
        shape: Their common image shape (h, w, C).
        config: Order, augmentation, targets, global batch size and seed.
        pool: Reads and augments.
        features: Those of a frozen encoder, which batches then hold in place of the images.

    Raises:
        ConfigError: If a stage trains the mask alone and no defect's mask is known.

    Attributes:
        error: Why a batch could not be read, where one could not.
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

    def batches(
        self, stage_index: int, first_step: int, steps: int, shard: InputShard = WHOLE_BATCH
    ) -> tf.data.Dataset:
        """Reads batches `first_step` to `steps` of a stage, one element a replica of `shard`, one by one.

        What a global batch holds depends on seed, stage and step alone: a resumed run sees the same
        ones, and so does a run on other devices or machines.

        Returns:
            Elements are a `Batch` each, B the batch of one replica.
        """
        rows = self._batch_size // shard.processes
        positions = np.arange(first_step * self._batch_size, steps * self._batch_size)
        positions = positions.reshape(-1, shard.processes, rows)[:, shard.index].ravel()
        turns = self._turns(stage_index, steps)
        size = rows // shard.replicas

        def read() -> Iterator[Arrays]:
            places = (_place(turns, stage_index, at) for at in positions.tolist())
            return self._read(places, size, ahead=2 * rows)

        batches = tf.data.Dataset.from_generator(read, output_signature=self._signature(size))
        return batches.prefetch(shard.replicas).with_options(_untuned())

    def distribute(
        self, strategy: tf.distribute.Strategy, stage_index: int, first_step: int, steps: int
    ) -> Iterator[Batch]:
        """Reads the same batches, split over the replicas of `strategy`; each process reads its own rows."""
        devices = strategy.extended.worker_devices
        processes = strategy.num_replicas_in_sync // len(devices)
        index = strategy.cluster_resolver.task_id if processes > 1 else 0
        shard = InputShard(index, processes, len(devices))
        elements = iter(self.batches(stage_index, first_step, steps, shard))
        return _over_replicas(strategy, devices, elements)

    def global_batch(
        self, stage_index: int, step: int, max_images: int | None = None
    ) -> tuple[list[str], Arrays]:
        """Reads once more what step `step` (from 1) saw: names of its first images, and the batch of them.

        It holds the images themselves, also where the step saw their features.
        """
        first = (step - 1) * self._batch_size
        positions = range(first, step * self._batch_size)[:max_images]
        turns = self._turns(stage_index, step)
        places = [_place(turns, stage_index, at) for at in positions]
        (batch,) = self._read(iter(places), len(places), ahead=0, see=self._augmented)
        return [self._examples.name(place.index, place.donor) for place in places], batch

    def _turns(self, stage_index: int, steps: int) -> SampleOrder:
        """The examples in the order of the stage; those without a mask teach the mask alone nothing."""
        usable = np.arange(len(self._source))
        if not STAGES[stage_index].trains_decision:
            usable = np.flatnonzero(self._source.supervised)
        source, changes = self._source, self._config.augmentation
        images, donors = sample_order(
            self._config.sampling,
            [source.labels[index] for index in usable.tolist()],
            [bool(changes.transplant) and source.has_drawn_mask(index) for index in usable.tolist()],
            steps * self._batch_size,
            [self._config.seed, stage_index],
            synthetic=changes.synthetic,
            transplant=changes.transplant,
            feature_noise=changes.feature_noise,
        )
        return SampleOrder(usable[images], np.where(donors < 0, donors, usable[donors]))

    def _check_masks(self) -> None:
        if self._config.augmentation.synthetic:  # their masks are known
            return
        known = zip(self._source.labels, self._source.supervised, strict=True)
        if self._config.stages.segment.steps and not any(label and supervised for label, supervised in known):
            raise ConfigError(
                "Of the defective training photographs the class alone is known, so that the stage 'segment' "
                "has nothing to learn. Expected masks or boxes of some: draw them, or set "
                "stages.segment.steps = 0, and network.gradient_gate = false so that the decision teaches "
                "the segmentation network in the joint stage."
            )

    def _signature(self, size: int) -> dict[str, tf.TensorSpec]:
        height, width, channels = self._shape
        stride = self._config.network.mask_stride
        grid = size, height // stride, width // stride
        target = tf.TensorSpec((*grid, self._config.network.mask_channels), tf.float32)
        weight = tf.TensorSpec((*grid, 1), tf.float32)
        seen = {"image": tf.TensorSpec((size, height, width, channels), tf.float32)}
        if self._features is not None:
            shapes = self._features.shapes.items()
            seen = {name: tf.TensorSpec((size, *shape), FEATURE_DTYPE) for name, shape in shapes}
        return {**seen, "target": target, "weight": weight, "label": tf.TensorSpec((size,), tf.int32)}

    def _read(
        self,
        places: Iterator[_Place],
        size: int,
        ahead: int,
        see: Callable[[_Place], Arrays] | None = None,
    ) -> Iterator[Arrays]:
        """Batches of `size` rows; `ahead` rows lie ready while the threads work on others."""
        load = partial(self._load, see=see or self._seen)
        rows = self._pool.map(load, places, ahead + self._pool.threads)
        try:
            while batch := list(islice(rows, size)):
                yield {name: np.stack([row[name] for row in batch]) for name in batch[0]}
        except (SegdecError, OSError) as error:
            self.error = error  # TensorFlow turns the exception into text; the trainer raises this one
            raise
        finally:
            rows.close()

    def _load(self, place: _Place, see: Callable[[_Place], Arrays]) -> Arrays:
        """What one example gives a batch, without its first axis."""
        config, shape = self._config, self._shape
        seen = dict(see(place))
        mask, area, classes = (seen.pop(name, None) for name in ("mask", "area", "classes"))
        share, weight = build_targets(
            mask,
            (shape[0], shape[1]),
            config.target,
            config.network.mask_stride,
            supervised=self._examples.is_supervised(place.index, place.donor),
            area=area,
        )
        label = self._examples.label(place.index, place.donor, masked=mask is not None)
        if config.network.mask_channels > 1:
            settings = config.target, config.network.mask_stride, config.network.mask_channels
            share = split_by_class(share, mask, label, *settings, classes=classes, area=area)
        return {**seen, "target": share, "weight": weight, "label": np.asarray(label, np.int32)}

    def _seen(self, place: _Place) -> Arrays:
        """What the network sees of an example, image or features, and `mask` and the like, where there are.

        Features of an example that got a defect are not kept: it does not come again.
        """
        if self._features is None:
            return self._augmented(place)
        if place.donor not in (UNCHANGED, FEATURE_NOISE):
            return self._features.compute(self._augmented(place))
        whole = replace(place, donor=UNCHANGED)
        flips = flipped_axes(draw_parameters(self._random(place)), self._config.augmentation)
        seen = self._features.get((place.index, flips), lambda: self._augmented(whole))
        if place.donor == UNCHANGED or (mask := self._noise_mask(place, seen)) is None:
            return seen
        features = {name: seen[name] for name in self._features.shapes}
        return {**seen, **add_noise(features, mask, self._random(place, _NOISE)), "mask": mask}

    def _augmented(self, place: _Place) -> Arrays:
        """The augmented `image`, and its `mask`, `area` and `classes`, where there are."""
        example = self._examples.get(place.index, place.donor, self._random(place, _DEFECT))
        changes = self._config.augmentation
        random = self._random(place)
        changed = augment(example.image, example.mask, random, changes, example.area, example.classes)
        beside = {"mask": changed.mask, "area": changed.area, "classes": changed.classes}
        known = {name: one for name, one in beside.items() if one is not None}
        seen: Arrays = {"image": changed.image, **known}
        mask = self._noise_mask(place, seen) if place.donor == FEATURE_NOISE else None
        return seen if mask is None else {**seen, "mask": mask}

    def _noise_mask(self, place: _Place, seen: Arrays) -> NDArray[np.uint8] | None:
        """Where the features of a good example get noise."""
        size = self._shape[0], self._shape[1]
        return draw_noise_mask(self._random(place, _DEFECT), size, seen.get("area"))

    def _random(self, place: _Place, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self._config.seed, place.stage_index, place.position, *purpose])


def _untuned() -> tf.data.Options:
    """Without autotuning: nothing of the pipeline could be tuned, and its thread sleeps for up to a minute.

    Whoever drops an iterator waits for that thread when the signal to wake up was lost, which happens often:
    it is sent before the thread can see why (`Model::OptimizeLoop` of TensorFlow 2.21).
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return options


def _over_replicas(
    strategy: tf.distribute.Strategy, devices: Sequence[str], elements: Iterator[Batch]
) -> Iterator[Batch]:
    """Groups one element a replica, each on its device.

    Not `distribute_datasets_from_function`: its iterators autotune whatever the options say.
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


def _place(turns: SampleOrder, stage_index: int, position: int) -> _Place:
    return _Place(stage_index, position, int(turns.images[position]), int(turns.donors[position]))
