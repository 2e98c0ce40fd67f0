"""Validation photographs with synthetic defects, for data sets without defective validation photographs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from datasets.sample import Record, Sample, labels_of
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

    records: Sequence[Record]
    read: Callable[[Record], Sample]


def synthetic_validation(
    records: Sequence[Record],
    read: Callable[[Record], Sample],
    model: ModelConfig,
    seed: int,
    cache: ArrayCache,
) -> ValidationImages | None:
    """Returns the photographs and copies of them with synthetic defects; None if one has a real defect.

    A copy has the size of the network's input, so that its defect has the size of those in training. The
    defects depend on the seed; `cache` stores the copies.
    """
    if labels_of(records).any():
        return None
    chosen = pick_evenly(range(len(records)), MAX_IMAGES)
    sources = {records[index].name + SUFFIX: index for index in chosen}
    copies = [
        # A mask file marks the location as known; it is not read.
        replace(records[index], name=name, label=1, mask_file=records[index].image_file)
        for name, index in sources.items()
    ]

    def read_or_synthesize(record: Record) -> Sample:
        index = sources.get(record.name)
        if index is None:
            return read(record)
        random = np.random.default_rng([seed, SEED, index])
        good, other = read(records[index]), read(records[int(random.integers(len(records)))])
        image, texture = (
            prepare_sample(sample, model.input, model.network.input_channels) for sample in (good, other)
        )
        ignored = None if good.ignored is None else prepare_mask(good.ignored, model.input)
        # The model processes the copy as a photograph, so the inspected area is applied to the copy.
        area = known_area(model.input.inspected_area(*image.shape[:2]), ignored)
        changed, mask = synthesize_anomaly(image, [texture], random, area)
        return Sample(record.name, changed, mask, record.label, ignored=ignored)

    return ValidationImages([*records, *copies], cached_reader(read_or_synthesize, cache))
