"""Validation photographs with synthetic defects, for data sets without defective validation photographs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from datasets.sample import DataSetItem, Sample, labels_of
from segdec.config import ModelConfig
from segdec.inference.preprocessing import prepare_mask
from training.data.array_cache import ArrayCache
from training.data.example_source import prepare_sample
from training.data.run_data import cached_reader
from training.data.subsets import pick_evenly
from training.data.targets import known_area
from training.synthesis.anomalies import synthesize_anomaly

MAX_IMAGES = 200
"""Maximum number of photographs that get a defect."""

SEED = 2**32 - 4
"""Separates these random numbers from those of training."""

SUFFIX = " + synthetic defect"


@dataclass(frozen=True)
class ValidationImages:
    """Photographs on which the best weights are chosen, and the function that reads one."""

    items: Sequence[DataSetItem]
    read: Callable[[DataSetItem], Sample]


def synthetic_validation(
    items: Sequence[DataSetItem],
    read: Callable[[DataSetItem], Sample],
    model: ModelConfig,
    seed: int,
    cache: ArrayCache,
) -> ValidationImages | None:
    """Returns the photographs and copies of them with synthetic defects; None if one has a real defect.

    A copy has the size of the network's input, so that its defect has the size of those in training. The
    defects depend on the seed; `cache` stores the copies.
    """
    if labels_of(items).any():
        return None
    chosen = pick_evenly(range(len(items)), MAX_IMAGES)
    sources = {items[index].name + SUFFIX: index for index in chosen}
    copies = [
        # A mask file marks the location as known; it is not read.
        replace(items[index], name=name, label=1, mask_file=items[index].image_file)
        for name, index in sources.items()
    ]

    def read_or_synthesize(item: DataSetItem) -> Sample:
        index = sources.get(item.name)
        if index is None:
            return read(item)
        random = np.random.default_rng([seed, SEED, index])
        good, other = read(items[index]), read(items[int(random.integers(len(items)))])
        image, texture = (
            prepare_sample(sample, model.input, model.network.input_channels) for sample in (good, other)
        )
        ignored = None if good.ignored is None else prepare_mask(good.ignored, model.input)
        # The model processes the copy as a photograph, so the inspected area is applied to the copy.
        area = known_area(model.input.inspected_area(*image.shape[:2]), ignored)
        changed, mask = synthesize_anomaly(image, [texture], random, area)
        return Sample(item.name, changed, mask, item.label, ignored=ignored)

    return ValidationImages([*items, *copies], cached_reader(read_or_synthesize, cache))
