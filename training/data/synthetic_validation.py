"""Photographs with made-up defects, to validate by where no defective one is at hand: the same each time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from datasets.sample import Record, Sample, labels_of
from segdec.config import ModelConfig
from training.data.array_cache import ArrayCache
from training.data.example_source import prepare_sample
from training.data.run_data import cached_reader
from training.synthesis.anomalies import synthesize_anomaly

Read = Callable[[Record], Sample]

MAX_IMAGES = 200
"""Photographs that get a defect, at most."""

SEED = 2**32 - 4
"""Keeps what is drawn here apart from what training draws."""

SUFFIX = " + made-up defect"


@dataclass(frozen=True)
class ValidationImages:
    """What the weights are chosen by.

    Attributes:
        records: The photographs.
        read: Reads one.
    """

    records: Sequence[Record]
    read: Read


def synthetic_validation(
    records: Sequence[Record], read: Read, model: ModelConfig, seed: int, cache: ArrayCache
) -> ValidationImages | None:
    """Returns good photographs, and copies of them with made-up defects; None if one shows a real defect.

    A copy is as the network sees the photograph, so that its defect is as large as those of training.

    Args:
        records: The validation photographs.
        read: Reads one.
        model: Geometry and channels of the network's input.
        seed: Decides the defects.
        cache: Keeps the copies.
    """
    if labels_of(records).any():
        return None
    chosen = np.unique(
        np.linspace(0, len(records) - 1, min(MAX_IMAGES, len(records))).round().astype(int)
    ).tolist()
    places = {records[place].name + SUFFIX: place for place in chosen}
    copies = [
        # A mask file says that it is known where the defect is; nobody reads it.
        replace(records[place], name=name, label=1, mask_file=records[place].image_file)
        for name, place in places.items()
    ]

    def read_or_make_up(record: Record) -> Sample:
        place = places.get(record.name)
        if place is None:
            return read(record)
        random = np.random.default_rng([seed, SEED, place])
        other = int(random.integers(len(records)))
        image, texture = (
            prepare_sample(read(records[index]), model.input, model.network.input_channels)
            for index in (place, other)
        )
        # The model sees the copy as a photograph of its own, and inspects the same part of it.
        area = model.input.inspected_area(*image.shape[:2])
        changed, mask = synthesize_anomaly(image, [texture], random, area)
        return Sample(record.name, changed, mask, record.label)

    return ValidationImages([*records, *copies], cached_reader(read_or_make_up, cache))
